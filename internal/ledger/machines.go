package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// maxUnknown is how many machines of no node are kept. Who floods the network with
// invented addresses fills no disk.
const maxUnknown = 2048

func (l *Ledger) put(ctx context.Context, tx *sql.Tx, r life.Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := l.putBinding(ctx, tx, r); err != nil {
		return err
	}
	err = exec(ctx, tx, `INSERT INTO machines (key, node, state, seen, record) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET node = excluded.node, state = excluded.state, seen = excluded.seen, record = excluded.record`,
		string(r.Key), r.Node, string(r.State), micros(r.LastSeen), string(b))
	if err != nil {
		return err
	}
	if err := putNames(ctx, tx, r); err != nil {
		return err
	}
	if err := putTicket(ctx, tx, r); err != nil {
		return err
	}
	if r.Node != "" {
		return nil
	}
	return prune(ctx, tx)
}

// putBinding writes the history of bindings on.
func (l *Ledger) putBinding(ctx context.Context, tx *sql.Tx, r life.Record) error {
	var node string
	err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT node FROM machines WHERE key = ?), '')", string(r.Key)).Scan(&node)
	if err != nil || node == r.Node {
		return err
	}
	return exec(ctx, tx, "INSERT INTO bindings (machine, node, why, at) VALUES (?, ?, ?, ?)", string(r.Key), r.Node, r.Why, micros(l.now()))
}

func putNames(ctx context.Context, tx *sql.Tx, r life.Record) error {
	if err := exec(ctx, tx, "DELETE FROM names WHERE machine = ?", string(r.Key)); err != nil {
		return err
	}
	for _, name := range append(machine.Keys(r.MACs, r.Identity), r.Key) {
		if err := exec(ctx, tx, "INSERT INTO names (name, machine) VALUES (?, ?) ON CONFLICT DO NOTHING", string(name), string(r.Key)); err != nil {
			return err
		}
	}
	return nil
}

func putTicket(ctx context.Context, tx *sql.Tx, r life.Record) error {
	if err := putToken(ctx, tx, r); err != nil || r.Grant == nil {
		return err
	}
	// Whatever this machine was armed with before has ended.
	err := exec(ctx, tx, "UPDATE tickets SET state = ? WHERE machine = ? AND state = 'live' AND id <> ?", string(life.EndSuperseded), string(r.Key), r.Grant.ID)
	if err != nil {
		return err
	}
	state := string(r.Grant.End)
	if state == "" {
		state = "live"
	}
	b, err := json.Marshal(r.Grant)
	if err != nil {
		return err
	}
	g := r.Grant
	return exec(ctx, tx, `INSERT INTO tickets (id, machine, node, state, issued, expires, tries, max_tries, grant_) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET machine = excluded.machine, state = excluded.state, expires = excluded.expires, tries = excluded.tries, grant_ = excluded.grant_`,
		g.ID, string(r.Key), g.Order.Node, state, micros(g.Issued), micros(g.Order.Expires), g.Tries, g.MaxTries, string(b))
}

// putToken makes the machine to be found by its tokens. Those that are dead stay:
// that a ticket was used is a better answer than that it is not known.
func putToken(ctx context.Context, tx *sql.Tx, r life.Record) error {
	if r.Grant == nil || r.Grant.Token.IsZero() {
		return nil
	}
	return exec(ctx, tx, "INSERT INTO tokens (hash, machine) VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET machine = excluded.machine", r.Grant.Token.Hex(), string(r.Key))
}

func prune(ctx context.Context, tx *sql.Tx) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM machines WHERE node = ''").Scan(&n); err != nil || n <= maxUnknown {
		return err
	}
	var key string
	if err := tx.QueryRowContext(ctx, "SELECT key FROM machines WHERE node = '' AND state IN ('seen', 'inventoried') ORDER BY seen, key LIMIT 1").Scan(&key); err != nil {
		return err
	}
	return drop(ctx, tx, machine.Key(key))
}

// drop forgets a machine. Its tickets, receipts, bindings and events stay: they
// tell what was done.
func drop(ctx context.Context, tx *sql.Tx, key machine.Key) error {
	for _, statement := range []string{
		"DELETE FROM machines WHERE key = ?", "DELETE FROM names WHERE machine = ?", "DELETE FROM tokens WHERE machine = ?", "DELETE FROM inventories WHERE machine = ?",
		"UPDATE tickets SET state = 'disarmed' WHERE machine = ? AND state = 'live'",
	} {
		if err := exec(ctx, tx, statement, string(key)); err != nil {
			return err
		}
	}
	return nil
}

// querier is a transaction or the database.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// machines reads records, in the order of their keys.
func machines(ctx context.Context, q querier, where string, args []any) ([]life.Record, error) {
	rows, err := q.QueryContext(ctx, "SELECT record FROM machines "+where+" ORDER BY key", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []life.Record
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		var r life.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, fmt.Errorf("a damaged record: %w", err)
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func (l *Ledger) machines(ctx context.Context, where string, args ...any) (out []life.Record, err error) {
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		out, err = machines(ctx, db, where, args)
		return err
	})
	return out, err
}

// Machines are all records, in the order of their keys.
func (l *Ledger) Machines(ctx context.Context) ([]life.Record, error) { return l.machines(ctx, "") }

// Machine is the record of that key.
func (l *Ledger) Machine(ctx context.Context, key machine.Key) (life.Record, error) {
	return one(string(key))(l.machines(ctx, "WHERE key = ?", string(key)))
}

// ByToken is the machine that a ticket with this hash was handed to, whether the
// ticket still works or not.
func (l *Ledger) ByToken(ctx context.Context, hash digest.Digest) (life.Record, error) {
	return one("this ticket")(l.machines(ctx, "WHERE key IN (SELECT machine FROM tokens WHERE hash = ?)", hash.Hex()))
}

// Find gives the machines that a person may mean by a word: a key, a node, a MAC
// address in any form, a serial number or a UUID.
func (l *Ledger) Find(ctx context.Context, word string) ([]life.Record, error) {
	low := strings.ToLower(strings.TrimSpace(word))
	if low == "" {
		return nil, nil
	}
	names := []any{word, word, low, "serial:" + low, "uuid:" + low, "mac:" + low}
	if mac, err := machine.ParseMAC(word); err == nil {
		names[5] = "mac:" + string(mac)
	}
	return l.machines(ctx, "WHERE node = ? OR key IN (SELECT machine FROM names WHERE name IN (?, ?, ?, ?, ?))", names...)
}

func one(what string) func([]life.Record, error) (life.Record, error) {
	return func(found []life.Record, err error) (life.Record, error) {
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("machine %s: %w", what, ErrUnknown)
		}
		if err != nil {
			return life.Record{}, err
		}
		return found[0], nil
	}
}
