package ledger_test

import (
	"testing"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
	"github.com/slipway/slipway/internal/machine/life"
)

// BenchmarkChange is one decision about one machine of a dozen: what a boot
// request costs the ledger, fsync included.
func BenchmarkChange(b *testing.B) {
	l, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var fleet []life.Record
	for n := range 12 {
		fleet = append(fleet, ledgertest.Record(n))
	}
	if err := l.Change(b.Context(), func([]life.Record) (ledger.Change, error) { return ledger.Change{Put: fleet}, nil }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := l.Change(b.Context(), func(fleet []life.Record) (ledger.Change, error) {
			fleet[0].Probes++
			return ledger.Change{Put: fleet[:1], Events: []ledger.Event{{Kind: "boot", Text: "bench"}}}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
