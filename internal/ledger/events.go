package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Event is something that happened, in words.
type Event struct {
	Seq     int64       `json:"seq"` // grows without going back; gaps are possible
	At      time.Time   `json:"at"`
	Machine machine.Key `json:"machine,omitempty"`
	Node    string      `json:"node,omitempty"`
	Kind    string      `json:"kind"`
	Code    string      `json:"code,omitempty"` // of a refusal
	Text    string      `json:"text"`
}

// keptEvents is how many events are kept.
const keptEvents = 50000

func putEvents(ctx context.Context, tx *sql.Tx, events []Event) error {
	for _, e := range events {
		done, err := tx.ExecContext(ctx, "INSERT INTO events (at, machine, node, kind, code, text) VALUES (?, ?, ?, ?, ?, ?)", micros(e.At), string(e.Machine), e.Node, e.Kind, e.Code, e.Text)
		if err != nil {
			return err
		}
		id, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if err := exec(ctx, tx, "DELETE FROM events WHERE seq <= ?", id-keptEvents); err != nil {
			return err
		}
	}
	return nil
}

// Note writes events that belong to no change of a machine, once for each key.
func (l *Ledger) Note(ctx context.Context, key string, events ...Event) error {
	return l.keyed(ctx, key, func(ctx context.Context, tx *sql.Tx) error { return putEvents(ctx, tx, events) })
}

// keyed is a transaction that happens once for each key.
func (l *Ledger) keyed(ctx context.Context, key string, do func(context.Context, *sql.Tx) error) error {
	return l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if fresh, err := l.claim(ctx, tx, key); err != nil || !fresh {
			return err
		}
		return do(ctx, tx)
	})
}

// Events are those after a cursor, the oldest first, at most so many. The cursor
// is the Seq of the last event that the caller has; 0 is before all. An event that
// becomes visible never has a Seq below one that was visible before.
func (l *Ledger) Events(ctx context.Context, after int64, limit int) (out []Event, err error) {
	query := "SELECT seq, at, machine, node, kind, code, text FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		out = nil
		rows, err := db.QueryContext(ctx, query, after, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e Event
			var at int64
			if err := rows.Scan(&e.Seq, &at, &e.Machine, &e.Node, &e.Kind, &e.Code, &e.Text); err != nil {
				return err
			}
			e.At = fromMicros(at)
			out = append(out, e)
		}
		return rows.Err()
	})
	return out, err
}

// LastEvent is the Seq of the newest event, 0 when there is none.
func (l *Ledger) LastEvent(ctx context.Context) (seq int64, err error) {
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM events").Scan(&seq)
	})
	return seq, err
}
