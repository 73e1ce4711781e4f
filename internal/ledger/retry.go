package ledger

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/canonical/go-dqlite/driver"
)

// How long a transaction is tried. A leader that died is replaced in about 4 s.
const (
	tryFor  = 30 * time.Second // all in all, unless ctx ends before
	oneTry  = 5 * time.Second  // a leader that does not answer is no leader
	backOff = 10 * time.Millisecond
	maxWait = 500 * time.Millisecond
)

// transact runs do in a transaction until it is committed, or fails for a reason
// that trying again does not change. A try that was not acknowledged may have
// happened; do has to see that itself (see Change).
func (l *Ledger) transact(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return l.retry(ctx, func(ctx context.Context) error {
		select {
		case l.writer <- struct{}{}:
			defer func() { <-l.writer }()
		case <-ctx.Done():
			return ctx.Err()
		}
		tx, err := l.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return errors.Join(err, rollback(tx))
		}
		return tx.Commit()
	})
}

// rollback gives up a transaction. That the connection is gone is no news then.
func rollback(tx *sql.Tx) error {
	err := tx.Rollback()
	if err == nil || errors.Is(err, sql.ErrTxDone) || transient(err) {
		return nil
	}
	return fmt.Errorf("giving up a transaction: %w", err)
}

// read runs a query until it is answered.
func (l *Ledger) read(ctx context.Context, do func(context.Context, *sql.DB) error) error {
	return l.retry(ctx, func(ctx context.Context) error { return do(ctx, l.db) })
}

func (l *Ledger) retry(ctx context.Context, try func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, tryFor)
	defer stop()
	for wait := backOff; ; wait = min(2*wait, maxWait) {
		err := l.once(ctx, try)
		if err == nil || !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNoLeader, err)
		case <-time.After(wait/2 + rand.N(wait)): // two that meet do not meet again
		}
	}
}

func (l *Ledger) once(ctx context.Context, try func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, oneTry)
	defer stop()
	return try(ctx)
}

// SQLite's result codes, by their low byte (sqlite.org/rescode.html). dqlite says
// IOERR when a member is or stays no leader.
const (
	codeBusy   = 5
	codeLocked = 6
	codeIO     = 10
)

// transient reports whether trying again may help: a lock, a leader that is gone
// or silent, a connection that broke.
func transient(err error) bool {
	var fromServer driver.Error
	if errors.As(err, &fromServer) {
		switch fromServer.Code & 0xff {
		case codeBusy, codeLocked, codeIO:
			return true
		}
		return false
	}
	var network net.Error
	for _, known := range []error{driver.ErrNoAvailableLeader, sqldriver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, &network)
}
