package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Report is the last inventory of a machine; nil when it never sent one.
func (l *Ledger) Report(ctx context.Context, key machine.Key) (*machine.Report, error) {
	return paper[machine.Report](ctx, l, "SELECT report FROM inventories WHERE machine = ?", key)
}

// Receipt is the last receipt of a machine, without its ticket; nil when it never
// sent one.
func (l *Ledger) Receipt(ctx context.Context, key machine.Key) (*machine.Receipt, error) {
	return paper[machine.Receipt](ctx, l, "SELECT receipt FROM receipts WHERE machine = ? ORDER BY id DESC LIMIT 1", key)
}

func paper[T any](ctx context.Context, l *Ledger, query string, key machine.Key) (*T, error) {
	var text string
	err := l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, query, string(key)).Scan(&text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal([]byte(text), out)
}

// Binding is one entry of the history of who was which node.
type Binding struct {
	Machine machine.Key `json:"machine"`
	Node    string      `json:"node"` // "" when it was taken from one
	Why     string      `json:"why"`
	At      time.Time   `json:"at"`
}

// Bindings is the history of a node's machines, the oldest first.
func (l *Ledger) Bindings(ctx context.Context, node string) (out []Binding, err error) {
	query := "SELECT machine, node, why, at FROM bindings WHERE machine IN (SELECT machine FROM bindings WHERE node = ?) ORDER BY id"
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		out = nil
		rows, err := db.QueryContext(ctx, query, node)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var b Binding
			var at int64
			if err := rows.Scan(&b.Machine, &b.Node, &b.Why, &at); err != nil {
				return err
			}
			b.At = fromMicros(at)
			out = append(out, b)
		}
		return rows.Err()
	})
	return out, err
}
