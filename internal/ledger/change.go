package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Change is what a decision about machines leads to. All of it is stored, or nothing.
type Change struct {
	Put      []life.Record
	Gone     []machine.Key
	Reports  map[machine.Key]machine.Report
	Receipts map[machine.Key]machine.Receipt // stored without their tickets
	Events   []Event                         // Seq is given here
}

// Change shows all records to decide, and stores what it returns, in one
// transaction that nothing else gets between. When the transaction has to be
// repeated, decide is called again; what counts is its last call. An error of
// decide is returned as it is, and nothing is stored.
func (l *Ledger) Change(ctx context.Context, decide func([]life.Record) (Change, error)) error {
	_, err := l.ChangeOnce(ctx, rand.Text(), decide)
	return err
}

// ChangeOnce is Change under a key that the caller has chosen: a change whose key
// is in the ledger has happened, decide is not called, and repeated is true. Keys
// are remembered for the last 10000 changes.
func (l *Ledger) ChangeOnce(ctx context.Context, key string, decide func([]life.Record) (Change, error)) (repeated bool, err error) {
	tried := false
	err = l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		fresh, err := l.claim(ctx, tx, key)
		if err != nil {
			return err
		}
		repeated = !fresh && !tried
		if !fresh {
			return nil // an earlier try was committed after all
		}
		fleet, err := machines(ctx, tx, "", nil)
		if err != nil {
			return err
		}
		tried = true
		c, err := decide(fleet)
		if err != nil {
			return err
		}
		return l.store(ctx, tx, c)
	})
	return repeated, err
}

// remembered is how many keys of changes are kept.
const remembered = 10000

// claim writes the key down. It is the first statement of a transaction, so that
// two that meet do so here, before either has read anything.
func (l *Ledger) claim(ctx context.Context, tx *sql.Tx, key string) (fresh bool, err error) {
	done, err := tx.ExecContext(ctx, "INSERT INTO changes (key, at) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", key, micros(l.now()))
	if err != nil {
		return false, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return false, err
	}
	return true, exec(ctx, tx, "DELETE FROM changes WHERE id <= ?", id-remembered)
}

func (l *Ledger) store(ctx context.Context, tx *sql.Tx, c Change) error {
	for _, key := range c.Gone {
		if err := drop(ctx, tx, key); err != nil {
			return fmt.Errorf("dropping machine %s: %w", key, err)
		}
	}
	put := slices.Clone(c.Put)
	slices.SortStableFunc(put, func(a, b life.Record) int { return alive(a) - alive(b) }) // a ticket ends before its successor begins
	for _, r := range put {
		if err := l.put(ctx, tx, r); err != nil {
			return fmt.Errorf("storing machine %s: %w", r.Key, err)
		}
	}
	for key, report := range c.Reports {
		if err := l.putReport(ctx, tx, key, report); err != nil {
			return fmt.Errorf("storing the inventory of %s: %w", key, err)
		}
	}
	for key, receipt := range c.Receipts {
		if err := l.putReceipt(ctx, tx, key, receipt); err != nil {
			return fmt.Errorf("storing the receipt of %s: %w", key, err)
		}
	}
	return putEvents(ctx, tx, c.Events)
}

func alive(r life.Record) int {
	if r.Grant != nil && r.Grant.End == "" {
		return 1
	}
	return 0
}

func (l *Ledger) putReport(ctx context.Context, tx *sql.Tx, key machine.Key, report machine.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return exec(ctx, tx, "INSERT INTO inventories (machine, at, report) VALUES (?, ?, ?) ON CONFLICT (machine) DO UPDATE SET at = excluded.at, report = excluded.report", string(key), micros(l.now()), string(b))
}

func (l *Ledger) putReceipt(ctx context.Context, tx *sql.Tx, key machine.Key, receipt machine.Receipt) error {
	sum := receipt.Digest()
	receipt.Ticket = "" // it is a secret
	b, err := json.Marshal(receipt)
	if err != nil {
		return err
	}
	return exec(ctx, tx, `INSERT INTO receipts (digest, id, machine, node, at, ok, receipt)
		VALUES (?, (SELECT coalesce(max(id), 0) + 1 FROM receipts), ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING`,
		sum.Hex(), string(key), receipt.Node, micros(l.now()), receipt.Error == "", string(b))
}

// micros is a time as the ledger's columns have it.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
