package desk

import (
	"context"
	"fmt"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Member is one of those that hold the ledger, as operators see it.
type Member struct {
	Address string `json:"address"` // host:port, or one that begins with @ for a member without others
	Role    string `json:"role"`    // voter, stand-by or spare
	Leader  bool   `json:"leader"`
	Self    bool   `json:"self"`    // the pxed that was asked
	Answers bool   `json:"answers"` // it is alive, and the pxed that was asked can reach it
}

// Members are those that hold the ledger. What must not be removed, or is not
// there, is refused with a *machine.Refusal.
type Members interface {
	Members(ctx context.Context) ([]Member, error)
	Remove(ctx context.Context, address string) error
}

// Codes of refusals about members.
const (
	CodeNoMember machine.Code = "no-such-member" // the ledger has no member at this address
	CodeStays    machine.Code = "member-stays"   // it is alive, or without it too few would be left
)

// Members lists those that hold the ledger.
func (d *Desk) Members(ctx context.Context) ([]Member, error) {
	if d.members == nil {
		return nil, &machine.Refusal{Code: machine.CodeOrder, Reason: "this pxed keeps a ledger that has no members"}
	}
	return d.members.Members(ctx)
}

// RemoveMember takes a member that is gone for good out of the ledger, and returns
// those that are left.
func (d *Desk) RemoveMember(ctx context.Context, address string) ([]Member, error) {
	if _, err := d.Members(ctx); err != nil {
		return nil, err
	}
	if err := d.members.Remove(ctx, address); err != nil {
		return nil, d.noted(ctx, "member", life.Record{}, err)
	}
	e := Event{At: d.now(), Kind: "member", Text: fmt.Sprintf("%s is no member of the ledger any more", address)}
	if err := d.change(ctx, func([]life.Record) (Change, error) { return Change{Events: []Event{e}}, nil }); err != nil {
		return nil, err
	}
	return d.Members(ctx)
}
