// Package keep lets the desk write into the ledger.
package keep

import (
	"context"
	"errors"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/machine"
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

// Members implements desk.Members.
func (l Ledger) Members(ctx context.Context) ([]desk.Member, error) {
	list, err := l.Ledger.Members(ctx)
	out := make([]desk.Member, 0, len(list))
	for _, m := range list {
		out = append(out, desk.Member{Address: m.Address, Role: m.Role, Leader: m.Leader, Self: m.Self, Answers: m.Answers})
	}
	return out, err
}

// Remove implements desk.Members.
func (l Ledger) Remove(ctx context.Context, address string) error {
	err := l.Ledger.Remove(ctx, address)
	switch {
	case errors.Is(err, ledger.ErrUnknown):
		return &machine.Refusal{Code: desk.CodeNoMember, Reason: err.Error(), Hint: diag.HintOf(err)}
	case errors.Is(err, ledger.ErrStays):
		return &machine.Refusal{Code: desk.CodeStays, Reason: err.Error(), Hint: diag.HintOf(err)}
	}
	return err
}
