// Package ledger keeps what was observed and done: machines, their inventories
// and bindings, tickets (hashed), receipts, runs of stories and the event log. It
// holds no secret, and losing it is never a disaster: it can be rebuilt from the
// living cluster.
//
// It is a dqlite database: SQLite whose log is replicated by Raft. One process
// holds it by itself until others join; with three or more members any one may die
// without a loss. Two properties of dqlite shape the package: writers that meet
// get "database is locked" at once, so every write is tried again for a bounded
// time; and a write that was not acknowledged may still have happened, so every
// write carries a key, and one that happened is not done again.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/canonical/go-dqlite/app"
	"github.com/canonical/go-dqlite/client"
	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/ledger/dirlock"
	"github.com/slipway/slipway/internal/ledger/sharedkey"
)

// Errors that callers branch on.
var (
	// ErrInUse: another process has the ledger of this directory.
	ErrInUse = errors.New("the ledger is in use")
	// ErrNoLeader: there was no majority, or it did not answer, for as long as allowed.
	ErrNoLeader = errors.New("the ledger has no leader")
	// ErrNewer: the ledger was written by a newer program.
	ErrNewer = errors.New("the ledger is newer than this program")
	// ErrUnknown: what was asked for is not in the ledger.
	ErrUnknown = errors.New("not in the ledger")
	// ErrStays: a member that must not be removed.
	ErrStays = errors.New("the member stays")
)

// KeyName is the file in a member's directory that holds the shared key, unless
// Options.Key names another.
const KeyName = sharedkey.Name

// Options say where the ledger lives and who its other members are.
type Options struct {
	// Dir holds the member's data, 0700. It is made when absent.
	Dir string
	// Address, host:port, is where other members reach this one; it is part of
	// the member's identity. Empty means that there are no others: nothing listens
	// on the network. A ledger that was opened without one gets one later by being
	// opened with it.
	Address string
	// Join names members of the ledger to join, host:port. It counts only when Dir
	// is new.
	Join []string
	// Key is the PEM file with the certificate and private key that all members
	// share and know each other by. Empty means ledger.pem in Dir; it is made when
	// absent and nothing is joined.
	Key string
	// Log takes what dqlite has to say; nil means nothing.
	Log *slog.Logger
	// Now is the clock of the ledger's own book-keeping; nil means time.Now.
	Now func() time.Time
}

// Ledger is one member. It is safe for concurrent use.
type Ledger struct {
	dir    string
	app    *app.App
	db     *sql.DB
	lock   *os.File
	writer chan struct{} // one write at a time: two would only lock each other out
	now    func() time.Time
	log    *slog.Logger
	dial   client.DialFunc // to other members
}

// leaderless bounds how long Open waits for a leader when ctx does not.
const leaderless = time.Minute

// Open starts the member that lives in o.Dir and waits until the ledger answers.
// The caller closes it.
func Open(ctx context.Context, o Options) (*Ledger, error) { return openAt(ctx, o, migrations()) }

// openAt brings the ledger to the schema that the migrations lead to.
func openAt(ctx context.Context, o Options, all []migration) (*Ledger, error) {
	ctx, stop := context.WithTimeout(ctx, leaderless)
	defer stop()
	l := &Ledger{dir: o.Dir, writer: make(chan struct{}, 1), now: o.Now, log: o.Log, dial: client.DefaultDialFunc}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	err := l.open(ctx, o, all)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the ledger in %s: %w", o.Dir, err), l.release())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context, o Options, all []migration) error {
	var err error
	l.lock, err = dirlock.Take(o.Dir, l.now())
	if held := (*dirlock.HeldError)(nil); errors.As(err, &held) {
		return diag.WithHint(fmt.Errorf("%w by %s", ErrInUse, held.By), diag.HintOf(err))
	}
	if err != nil {
		return err
	}
	if l.app, err = l.start(ctx, o); err != nil {
		return err
	}
	if err := l.wait(ctx); err != nil {
		return err
	}
	if l.db, err = l.app.Open(ctx, database); err != nil {
		return l.noLeader(err)
	}
	return l.migrate(ctx, all)
}

// database is the name of the database inside dqlite.
const database = "slipway"

// wait waits for the member to know its leader.
func (l *Ledger) wait(ctx context.Context) error {
	if err := l.app.Ready(ctx); err != nil {
		return l.noLeader(err)
	}
	return nil
}

func (l *Ledger) noLeader(err error) error {
	return diag.WithHint(fmt.Errorf("%w: %w", ErrNoLeader, err),
		"a majority of the members has to run and to be reachable; a member that was removed has to join anew with an empty directory")
}

// Close hands leadership and vote over to another member, if there is one, and
// stops this one.
func (l *Ledger) Close() error {
	if l.db == nil {
		return nil
	}
	members := l.leave()
	if err := l.release(); err != nil || len(members) < 2 {
		return err
	}
	// package app brings the list up to date only now and then, and a member that
	// gave its vote away is not told who leads: it has to know whom to ask.
	return renameio.WriteFile(filepath.Join(l.dir, membersFile), membersText(members), 0o600)
}

// leave hands over and gives the members there are. A majority that is gone does
// not keep this member from stopping.
func (l *Ledger) leave() []client.NodeInfo {
	ctx, stop := context.WithTimeout(context.Background(), leaderTime)
	defer stop()
	members, _, err := l.nodes(ctx)
	if err == nil && len(members) > 1 {
		ctx, stop := context.WithTimeout(context.Background(), handoverTime)
		defer stop()
		err = l.app.Handover(ctx)
	}
	if err != nil {
		l.log.Warn("leaving the ledger without handing over", "error", err)
	}
	return members
}

// Bounds of Close, which is the end of a process that somebody wants to end.
const (
	leaderTime   = 3 * time.Second  // for finding out who leads
	handoverTime = 10 * time.Second // for leaving in good order
	stopTime     = 20 * time.Second // for stopping; dqlite may wait for a majority that is gone
)

func (l *Ledger) release() error {
	var errs []error
	if l.db != nil {
		errs = append(errs, l.db.Close())
	}
	if l.app != nil {
		errs = append(errs, within(stopTime, l.app.Close))
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	l.db, l.app, l.lock = nil, nil, nil
	return errors.Join(errs...)
}

// within gives up waiting, not the work. What is written is safe in any case: the
// ledger is made to survive its processes being killed.
func within(limit time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("the ledger did not stop within %v", limit)
	}
}

// logger passes on what dqlite says.
func logger(log *slog.Logger) client.LogFunc {
	levels := map[client.LogLevel]slog.Level{client.LogDebug: slog.LevelDebug, client.LogInfo: slog.LevelInfo, client.LogWarn: slog.LevelWarn, client.LogError: slog.LevelError}
	return func(level client.LogLevel, format string, args ...any) {
		log.Log(context.Background(), levels[level], fmt.Sprintf(format, args...), "part", "dqlite")
	}
}
