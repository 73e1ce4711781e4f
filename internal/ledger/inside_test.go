package ledger

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/canonical/go-dqlite/driver"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

func openTest(t *testing.T, o Options, all []migration) *Ledger {
	t.Helper()
	l, err := openAt(t.Context(), o, all)
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

// Every schema that was ever released is brought to this program's, with its data.
func TestUpgrade(t *testing.T) {
	for version := 1; version < len(migrations()); version++ {
		o := Options{Dir: t.TempDir()}
		l := openTest(t, o, migrations()[:version])
		r := life.Record{Key: "mac:x", State: life.StateSeen}
		if err := l.Change(t.Context(), func([]life.Record) (Change, error) {
			return Change{Put: []life.Record{r}, Events: []Event{{Kind: "old"}}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openTest(t, o, migrations())
		got, err := l.Machine(t.Context(), r.Key)
		events, err2 := l.Events(t.Context(), 0, 10)
		if err != nil || err2 != nil || got.State != r.State || len(events) != 1 {
			t.Errorf("from %d: %+v, %v, %v, %v", version, got, events, err, err2)
		}
		if err := l.StartRun(t.Context(), Run{ID: "r"}); err != nil {
			t.Errorf("from %d: %v", version, err)
		}
	}
}

func TestNewer(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	l := openTest(t, o, append(migrations(), migration{version: len(migrations()) + 1, name: "next"}))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

// A migration that fails half way leaves the version before it.
func TestMigrationIsOneStep(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	bad := migration{version: len(migrations()) + 1, name: "bad", statements: []string{"CREATE TABLE half (a)", "CREATE TABLE machines (a)"}}
	if _, err := openAt(t.Context(), o, append(migrations(), bad)); err == nil {
		t.Fatal("a table was made twice")
	}
	l := openTest(t, o, migrations())
	var n int
	if err := l.db.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'half'").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestSchemaFiles(t *testing.T) {
	for i, m := range migrations() {
		if m.version != i+1 || filepath.Base(m.name)[:4] != fmt.Sprintf("%04d", i+1) || len(m.statements) == 0 {
			t.Errorf("%d: %s", m.version, m.name)
		}
	}
}

// Moving to an address is interrupted after every step.
func TestInterruptedMove(t *testing.T) {
	for _, remove := range []string{"", infoFile, membersFile} {
		o := Options{Dir: t.TempDir()}
		l := openTest(t, o, migrations())
		if err := l.Note(t.Context(), "k", Event{Kind: "before"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		o.Address = "127.0.0.1:" + freePort(t)
		move := fmt.Appendf(nil, "%d %s", 4711, o.Address)
		path := filepath.Join(o.Dir, moveFile)
		if err := os.WriteFile(path, move, 0o600); err != nil {
			t.Fatal(err)
		}
		if remove != "" { // it had come further than to the move file
			keep, err := os.ReadFile(filepath.Join(o.Dir, remove))
			if err != nil {
				t.Fatal(err)
			}
			if err := finishMove(o.Dir); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string][]byte{moveFile: move, remove: keep} {
				if err := os.WriteFile(filepath.Join(o.Dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		l = openTest(t, o, migrations())
		if n, err := l.LastEvent(t.Context()); err != nil || n != 1 || l.app.ID() != 4711 {
			t.Errorf("%d, %v, member %d", n, err, l.app.ID())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestTransient(t *testing.T) {
	for _, err := range []error{
		driver.Error{Code: 5, Message: "database is locked"}, driver.Error{Code: 517}, driver.Error{Code: 10250}, fmt.Errorf("x: %w", driver.Error{Code: 6}),
		driver.ErrNoAvailableLeader, sqldriver.ErrBadConn, context.DeadlineExceeded, fmt.Errorf("x: %w", os.ErrDeadlineExceeded),
	} {
		if !transient(err) {
			t.Errorf("%v is not tried again", err)
		}
	}
	for _, err := range []error{driver.Error{Code: 1, Message: "no such table"}, driver.Error{Code: 2067, Message: "UNIQUE constraint failed"}, sql.ErrNoRows, errors.New("x"), context.Canceled} {
		if transient(err) {
			t.Errorf("%v is tried again", err)
		}
	}
}

// A write that happened though nobody said so is not done twice.
func TestUnacknowledgedWrite(t *testing.T) {
	l := openTest(t, Options{Dir: t.TempDir()}, migrations())
	decided, tries := 0, 0
	decide := func([]life.Record) (Change, error) {
		decided++
		return Change{Events: []Event{{Kind: "once"}}}, nil
	}
	err := l.retry(t.Context(), func(ctx context.Context) error {
		_, err := l.ChangeOnce(ctx, "key", decide)
		if tries++; tries == 1 && err == nil {
			return sqldriver.ErrBadConn // the answer is lost on the way
		}
		return err
	})
	if n, err2 := l.LastEvent(t.Context()); err != nil || err2 != nil || tries != 2 || decided != 1 || n != 1 {
		t.Errorf("%v, %v, %d tries, decided %d times, %d events", err, err2, tries, decided, n)
	}
}

func TestUnknownMachinesAreBounded(t *testing.T) {
	l := openTest(t, Options{Dir: t.TempDir()}, migrations())
	fill := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO machines (key, node, state, seen, record) SELECT 'mac:' || i, '', 'seen', i, '{"key":"mac:' || i || '","state":"seen"}' FROM n`
	if _, err := l.db.Exec(fill, maxUnknown); err != nil {
		t.Fatal(err)
	}
	late := life.Record{Key: "mac:late", State: life.StateSeen, LastSeen: time.Now()}
	if err := l.Change(t.Context(), func([]life.Record) (Change, error) { return Change{Put: []life.Record{late}}, nil }); err != nil {
		t.Fatal(err)
	}
	got, err := l.Machines(t.Context())
	_, err2 := l.Machine(t.Context(), machine.Key("mac:1"))
	if err != nil || len(got) != maxUnknown || !errors.Is(err2, ErrUnknown) {
		t.Errorf("%d machines, %v; the oldest: %v", len(got), err, err2)
	}
}
