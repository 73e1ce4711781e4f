// Package keep lets the desk write into the ledger.
package keep

import (
	"context"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Ledger is a ledger as the desk wants it.
type Ledger struct{ *ledger.Ledger }

// Change implements desk.Records.
func (l Ledger) Change(ctx context.Context, decide func([]life.Record) (desk.Change, error)) error {
	return l.Ledger.Change(ctx, func(fleet []life.Record) (ledger.Change, error) {
		c, err := decide(fleet)
		out := ledger.Change{Put: c.Put, Gone: c.Gone, Reports: c.Reports, Receipts: c.Receipts}
		for _, e := range c.Events {
			out.Events = append(out.Events, ledger.Event(e))
		}
		return out, err
	})
}

// Events implements desk.Log.
func (l Ledger) Events(ctx context.Context, after int64, limit int) ([]desk.Event, error) {
	list, err := l.Ledger.Events(ctx, after, limit)
	out := make([]desk.Event, 0, len(list))
	for _, e := range list {
		out = append(out, desk.Event(e))
	}
	return out, err
}
