package pxed

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "token")
	first, err := EnsureToken(path)
	if err != nil || len(first) != 48 {
		t.Fatalf("%q %v", first, err)
	}
	if again, err := EnsureToken(path); err != nil || again != first {
		t.Errorf("%q after %q, %v", again, first, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(path); err == nil || diag.HintOf(err) == "" {
		t.Errorf("a token that everybody can read: %v", err)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(path); err == nil {
		t.Error("an empty token lets everybody in")
	}
}

func TestLeasesSurvive(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	path := filepath.Join(t.TempDir(), "leases.json")
	f := &LeaseFile{Path: path, Now: clock}
	if list, err := f.Load(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("%v %v", list, err)
	}
	l := lease.Lease{Addr: netip.MustParseAddr("10.0.0.9"), MAC: "52:54:00:00:00:09", State: lease.Bound, Expires: now.Add(time.Hour)}
	for range 2 {
		if err := f.Save(t.Context(), []lease.Lease{l}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := (&LeaseFile{Path: path, Now: clock}).Load(t.Context())
	if err != nil || len(list) != 1 || list[0] != l {
		t.Errorf("%+v %v", list, err)
	}
	now = now.Add(60 * 24 * time.Hour)
	if list, err := (&LeaseFile{Path: path, Now: clock}).Load(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&LeaseFile{Path: path, Now: clock}).Load(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestMayBind(t *testing.T) {
	const none, bind, all = "Name:\tpxed\nCapEff:\t0000000000000000\n", "CapEff:\t0000000000000400\n", "CapEff:\t000001ffffffffff\n"
	for _, c := range []struct {
		status, first string
		want          bool
	}{{none, "1024\n", false}, {bind, "1024\n", true}, {all, "1024\n", true}, {none, "0\n", true}, {none, "68", false}, {none, "", false}, {"", "1024", true}, {"CapEff:\tzz\n", "", false}} {
		if got := mayBind(c.status, c.first); got != c.want {
			t.Errorf("%q, %q: %v", c.status, c.first, got)
		}
	}
}
