package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
	"github.com/slipway/slipway/internal/machine/life"
)

func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	open(t, ledger.Options{Dir: dir})
	_, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
	if !errors.Is(err, ledger.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) || diag.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	open(t, ledger.Options{Dir: dir, Address: ledgertest.FreeAddress(t)})
	for name, want := range map[string]os.FileMode{"": 0o700, ledger.KeyName: 0o600} {
		if s, err := os.Stat(filepath.Join(dir, name)); err != nil || s.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, s.Mode(), err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for word, o := range map[string]ledger.Options{
		"no directory": {}, "needs an address": {Dir: t.TempDir(), Join: []string{"127.0.0.1:1"}}, "host:port": {Dir: t.TempDir(), Address: "127.0.0.1"},
		"not an address": {Dir: t.TempDir(), Address: ":80"}, "can reach": {Dir: t.TempDir(), Address: "0.0.0.0:80"}, `"x:0"`: {Dir: t.TempDir(), Address: "h:1", Join: []string{"x:0"}},
		"shared key": {Dir: t.TempDir(), Address: "127.0.0.1:9", Join: []string{"127.0.0.1:1"}},
	} {
		if _, err := ledger.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// reopened closes and opens a ledger.
func reopened(t *testing.T, l *ledger.Ledger, o ledger.Options) *ledger.Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, o)
}

func store(t *testing.T, l *ledger.Ledger, n int) {
	t.Helper()
	if err := l.Change(t.Context(), func([]life.Record) (ledger.Change, error) {
		return ledger.Change{Put: []life.Record{ledgertest.Record(n)}}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, l *ledger.Ledger, want int) {
	t.Helper()
	if got, err := l.Machines(t.Context()); err != nil || len(got) != want {
		t.Fatalf("%d machines of %d, %v", len(got), want, err)
	}
}

// A ledger begins alone and gets an address and others later.
func TestAloneThenNot(t *testing.T) {
	o := ledger.Options{Dir: t.TempDir()}
	l := open(t, o)
	store(t, l, 1)
	l = reopened(t, l, o)
	store(t, l, 2)

	o.Address = ledgertest.FreeAddress(t)
	l = reopened(t, l, o)
	holds(t, l, 2)
	joined := open(t, ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t), Join: []string{o.Address}, Key: filepath.Join(o.Dir, ledger.KeyName)})
	holds(t, joined, 2)
	store(t, joined, 3)
	holds(t, l, 3)

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := o
	elsewhere.Address = ledgertest.FreeAddress(t)
	if _, err := ledger.Open(t.Context(), elsewhere); err == nil || !strings.Contains(err.Error(), "known to others as "+o.Address) {
		t.Errorf("moved away from its companions: %v", err)
	}
	o.Address = "" // the one it has
	holds(t, open(t, o), 3)
}

func TestStrangerDoesNotJoin(t *testing.T) {
	o := ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t)}
	l := open(t, o)
	another := ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t)}
	if err := open(t, another).Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	_, err := ledger.Open(ctx, ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t), Join: []string{o.Address}, Key: filepath.Join(another.Dir, ledger.KeyName)})
	if !errors.Is(err, ledger.ErrNoLeader) {
		t.Errorf("with another key: %v", err)
	}
	if members, err := l.Members(t.Context()); err != nil || len(members) != 1 || !members[0].Self || !members[0].Leader {
		t.Errorf("%+v, %v", members, err)
	}
}

func TestRemove(t *testing.T) {
	members, options := three(t)
	for _, i := range []int{0, 2} {
		if err := members[0].Remove(t.Context(), options[i].Address); !errors.Is(err, ledger.ErrStays) || !strings.Contains(err.Error(), "alive") {
			t.Errorf("a living member: %v", err)
		}
	}
	if err := members[0].Remove(t.Context(), "127.0.0.1:1"); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
	if err := members[2].Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := members[0].Members(t.Context()); err != nil || len(all) != 3 || !all[0].Answers || !all[1].Answers || all[2].Answers {
		t.Errorf("who answers: %+v, %v", all, err)
	}
	if err := members[0].Remove(t.Context(), options[2].Address); err != nil {
		t.Fatal(err)
	}
	left, err := members[1].Members(t.Context())
	if err != nil || len(left) != 2 {
		t.Errorf("%+v, %v", left, err)
	}
	store(t, members[1], 1)

	// It may come back as a new one.
	o := options[2]
	o.Dir = t.TempDir()
	holds(t, open(t, o), 1)
}

// The leader leaves in good order: nobody has to wait for an election to time out.
func TestHandover(t *testing.T) {
	members, options := three(t)
	store(t, members[0], 1)
	if err := members[0].Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	store(t, members[1], 2)
	t.Logf("first write after the leader left: %v", time.Since(start).Round(time.Millisecond))
	holds(t, members[2], 2)
	holds(t, open(t, options[0]), 2)
}

// A ledger becomes smaller down to one member, and goes on being written.
func TestShrink(t *testing.T) {
	members, options := three(t)
	store(t, members[0], 1)
	for i := 2; i > 0; i-- {
		if err := members[i].Close(); err != nil {
			t.Fatal(err)
		}
		if err := members[0].Remove(t.Context(), options[i].Address); err != nil {
			t.Fatal(err)
		}
		store(t, members[0], 4-i)
	}
	if left, err := members[0].Members(t.Context()); err != nil || len(left) != 1 || !left[0].Self {
		t.Errorf("%+v, %v", left, err)
	}
	holds(t, members[0], 3)
}
