package book

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/pxed/httpd"
	"github.com/slipway/slipway/internal/pxed/keep"
	"github.com/slipway/slipway/internal/run"
)

const token = "the operator's token"

type silent struct{}

func (silent) Refused(string)                           {}
func (silent) Booted(string)                            {}
func (silent) Served(string, int, int64, time.Duration) {}

func open(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
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

// pxed serves a ledger as pxed does.
func pxed(t *testing.T, l *ledger.Ledger) string {
	t.Helper()
	d := desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: keep.Ledger{Ledger: l}, Now: time.Now})
	s := httptest.NewServer(httpd.New(httpd.Options{
		Desk: d, Build: buildtest.Open(t, buildtest.Contents()), Token: token, Log: slog.New(slog.DiscardHandler), Counter: silent{}, Book: keep.Book{Ledger: l},
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func remote(t *testing.T, url, token string) *client.Client {
	t.Helper()
	c, err := client.Remote(url, token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func environment() string { return desktest.Cluster().Environment }

// The same is true of a ledger that pxed has and of one that is opened here.
func TestBothWays(t *testing.T) {
	t.Run("here", func(t *testing.T) {
		b, err := Open(t.Context(), Options{Environment: environment(), Pxed: client.Socket(t.TempDir() + "/none"), Ledger: ledger.Options{Dir: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.Pxed() != nil {
			t.Error("a pxed that is not there has it")
		}
		check(t, b)
	})
	t.Run("pxed", func(t *testing.T) {
		l := open(t, t.TempDir())
		b, err := Open(t.Context(), Options{Environment: environment(), Pxed: remote(t, pxed(t, l), token), Ledger: ledger.Options{Dir: filepath.Join(t.TempDir(), "never")}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if b.Pxed() == nil {
			t.Error("pxed does not have it")
		}
		check(t, b)
	})
}

func check(t *testing.T, b *Book) {
	ctx := t.Context()
	clusters(t, b)
	for _, err := range []error{second(b.Run(ctx, "none")), b.SetStep(ctx, "none", run.Step{Name: "x"}), b.EndRun(ctx, "none", "", time.Now())} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("a run that never was: %v", err)
		}
	}
	planned, err := b.Look(ctx, "rebuild", "n1")
	if r, err2 := planned.Record(ctx); err != nil || err2 != nil || planned.ID != "" || len(r.Steps) != 0 {
		t.Errorf("%+v, %v, %v: nothing was begun", planned, err, err2)
	}
	first, resumed, err := b.Begin(ctx, "rebuild", "n1", "me", ledgertest.Clock())
	if err != nil || resumed {
		t.Fatalf("%v, %v", resumed, err)
	}
	if err := first.Note(ctx, "etcd snapshot / taken", "done", "n = 7"); err != nil {
		t.Fatal(err)
	}
	again, resumed, err := b.Begin(ctx, "rebuild", "n1", "somebody else", time.Now())
	if err != nil || !resumed || again.ID != first.ID {
		t.Errorf("%+v, %v, %v: the run that was killed goes on", again, resumed, err)
	}
	if other, resumed, err := b.Begin(ctx, "rebuild", "n2", "me", time.Now()); err != nil || resumed || other.ID == first.ID {
		t.Errorf("%+v, %v, %v: another node is another run", other, resumed, err)
	}
	if cluster, resumed, err := b.Begin(ctx, "rebuild", "", "me", time.Now()); err != nil || resumed {
		t.Errorf("%+v, %v, %v: a run about nobody is not one about somebody", cluster, resumed, err)
	}
	r, err := again.Record(ctx)
	if err != nil || !r.Open() || r.Owner != "me" || !r.Started.Equal(ledgertest.Clock()) || r.Step("etcd snapshot / taken").Note != "n = 7" || r.Step("never").State != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := first.End(ctx, "done"); err != nil {
		t.Fatal(err)
	}
	open, err := b.Runs(ctx, run.Filter{Story: "rebuild", Open: true})
	if err != nil || len(open) != 2 {
		t.Errorf("%+v, %v", open, err)
	}
	if next, resumed, err := b.Begin(ctx, "rebuild", "n1", "me", time.Now()); err != nil || resumed || next.ID == first.ID {
		t.Errorf("%+v, %v, %v: a run that ended is not gone on with", next, resumed, err)
	}
}

func second[T any](_ T, err error) error { return err }

func clusters(t *testing.T, b *Book) {
	t.Helper()
	ctx := t.Context()
	if _, err := b.Cluster(ctx, "lab"); !errors.Is(err, ErrUnknown) {
		t.Errorf("nothing is recorded: %v", err)
	}
	c := ledgertest.Cluster()
	if err := b.PutCluster(ctx, c); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Cluster(ctx, "lab"); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v, %v\nwant %+v", got, err, c)
	}
	other := c
	other.CA, other.UID = digest.Of([]byte("another")), "u-2"
	err := b.PutCluster(ctx, other)
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "is not the one that the ledger knows") || !strings.Contains(diag.HintOf(err), "--forget") {
		t.Errorf("another cluster: %v (hint %q)", err, diag.HintOf(err))
	}
	if err := b.ForgetCluster(ctx, "lab", other.CA); !errors.Is(err, ErrUnknown) {
		t.Errorf("forgetting one that is not recorded: %v", err)
	}
	if err := b.ForgetCluster(ctx, "lab", c.CA); err != nil {
		t.Error(err)
	}
}

func TestWhichLedger(t *testing.T) {
	dir := t.TempDir()
	url := pxed(t, open(t, dir))
	here := ledger.Options{Dir: dir}
	nobody := client.Socket(t.TempDir() + "/none")
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"another environment":   {Options{Environment: "moon", Pxed: remote(t, url, token), Ledger: here}, "pxed serves the environment " + environment() + ", the profile is moon"},
		"a wrong token":         {Options{Environment: environment(), Pxed: remote(t, url, "guessed"), Ledger: here}, "this needs the operator's token"},
		"a pxed that must be":   {Options{Environment: environment(), Pxed: nobody, Required: true, Ledger: here}, "no pxed answers"},
		"in use, and no socket": {Options{Environment: environment(), Pxed: nobody, Ledger: here}, "the ledger is in use by process"},
		"no directory":          {Options{Environment: environment()}, "no directory is given"},
	} {
		b, err := Open(t.Context(), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}
