package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
)

// open opens a member that the test closes at its end.
func open(t *testing.T, o ledger.Options) *ledger.Ledger {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	l, err := ledger.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// three opens three members of one ledger.
func three(t *testing.T) (members []*ledger.Ledger, options []ledger.Options) {
	t.Helper()
	first := ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t)}
	members, options = append(members, open(t, first)), append(options, first)
	for range 2 {
		o := ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t), Join: []string{first.Address}, Key: filepath.Join(first.Dir, ledger.KeyName)}
		members, options = append(members, open(t, o)), append(options, o)
	}
	return members, options
}

func TestOneMember(t *testing.T) {
	ledgertest.Run(t, open(t, ledger.Options{Dir: t.TempDir()}))
}

func TestThreeMembers(t *testing.T) {
	members, _ := three(t)
	ledgertest.Run(t, members...)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("SLIPWAY_TEST_MEMBER"); dir != "" {
		os.Exit(member(dir))
	}
	os.Exit(m.Run())
}
