package httpd

import (
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/keep"
)

// onBothLedgers runs a test with a ledger in memory and with a real one.
func onBothLedgers(t *testing.T, test func(*testing.T, *lab)) {
	t.Run("memory", func(t *testing.T) { test(t, newLab(t)) })
	t.Run("dqlite", func(t *testing.T) {
		l, err := ledger.Open(t.Context(), ledger.Options{Dir: filepath.Join(t.TempDir(), "ledger")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, newLab(t, func(d *desk.Options, _ *Options) { d.Ledger = keep.Ledger{Ledger: l} }))
	})
}
