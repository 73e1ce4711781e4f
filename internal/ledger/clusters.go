package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/digest"
)

// Cluster is what was recorded of the cluster of an environment.
func (l *Ledger) Cluster(ctx context.Context, environment string) (identity.Cluster, error) {
	var c identity.Cluster
	err := l.read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		c, err = cluster(ctx, db.QueryRowContext, environment)
		return err
	})
	return c, err
}

func cluster(ctx context.Context, query func(context.Context, string, ...any) *sql.Row, environment string) (c identity.Cluster, err error) {
	var text string
	err = query(ctx, "SELECT record FROM clusters WHERE environment = ?", environment).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("cluster of %s: %w", environment, ErrUnknown)
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(text), &c)
}

// PutCluster records a cluster as it was seen. Another cluster than the recorded one
// is refused, whoever asks: a mistake here would let the next run work on it.
func (l *Ledger) PutCluster(ctx context.Context, c identity.Cluster) error {
	record, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := identity.Same(c, c); err != nil {
		return err
	}
	return l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		// A write first: two that meet do so here, before either has read anything.
		if err := exec(ctx, tx, "UPDATE clusters SET at = at WHERE environment = ?", c.Environment); err != nil {
			return err
		}
		before, err := cluster(ctx, tx.QueryRowContext, c.Environment)
		switch {
		case errors.Is(err, ErrUnknown):
		case err != nil:
			return err
		default:
			if err := identity.Same(before, c); err != nil {
				return err
			}
		}
		if err := l.tellCluster(ctx, tx, before, c); err != nil {
			return err
		}
		return exec(ctx, tx, `INSERT INTO clusters (environment, ca, at, record) VALUES (?, ?, ?, ?)
			ON CONFLICT (environment) DO UPDATE SET ca = excluded.ca, at = excluded.at, record = excluded.record`,
			c.Environment, c.CA.Hex(), micros(l.now()), string(record))
	})
}

// tellCluster writes into the event log what is new about a cluster.
func (l *Ledger) tellCluster(ctx context.Context, tx *sql.Tx, before, now identity.Cluster) error {
	e := Event{At: l.now(), Kind: "cluster"}
	for _, d := range identity.Differences(before, now) {
		e.Text = fmt.Sprintf("cluster %s: %s %s", now.Name, d.What, d.Why)
		if before.CA.IsZero() {
			e.Text = fmt.Sprintf("cluster %s is known from now on, CA %s", now.Name, now.CA.Short())
		}
		if err := putEvents(ctx, tx, []Event{e}); err != nil || before.CA.IsZero() {
			return err
		}
	}
	return nil
}

// ForgetCluster drops the record of a cluster that is gone. The CA says which one is
// meant; a record of another stays. A record that is not there is forgotten.
func (l *Ledger) ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error {
	return l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM clusters WHERE environment = ? AND ca = ?", environment, ca.Hex())
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return errors.Join(err, putEvents(ctx, tx, []Event{{At: l.now(), Kind: "cluster", Text: fmt.Sprintf("the cluster of %s with CA %s is forgotten", environment, ca.Short())}}))
		}
		_, err = cluster(ctx, tx.QueryRowContext, environment)
		switch {
		case errors.Is(err, ErrUnknown):
			return nil
		case err == nil:
			return fmt.Errorf("a cluster of %s with CA %s: %w", environment, ca.Short(), ErrUnknown)
		}
		return err
	})
}
