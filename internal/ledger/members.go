package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/canonical/go-dqlite/client"

	"github.com/slipway/slipway/internal/diag"
)

// Member is one of those that hold the ledger.
type Member struct {
	Address string `json:"address"`
	Role    string `json:"role"` // voter, stand-by or spare
	Leader  bool   `json:"leader,omitempty"`
	Self    bool   `json:"self,omitempty"`
	id      uint64
}

// Members lists those that hold the ledger, as its leader knows them.
func (l *Ledger) Members(ctx context.Context) ([]Member, error) {
	nodes, leader, err := l.nodes(ctx)
	if err != nil {
		return nil, l.noLeader(err)
	}
	var out []Member
	for _, n := range nodes {
		out = append(out, Member{
			Address: n.Address, Role: n.Role.String(), id: n.ID,
			Leader: leader != nil && leader.ID == n.ID, Self: n.ID == l.app.ID(),
		})
	}
	return out, nil
}

func (l *Ledger) nodes(ctx context.Context) (all []client.NodeInfo, leader *client.NodeInfo, err error) {
	c, err := l.app.Leader(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	if leader, err = c.Leader(ctx); err != nil {
		return nil, nil, err
	}
	all, err = c.Cluster(ctx)
	return all, leader, err
}

// membersText is the list of members as go-dqlite's package app keeps it.
func membersText(nodes []client.NodeInfo) []byte {
	var out []byte
	for _, n := range nodes {
		out = fmt.Appendf(out, "- Address: '%s'\n  ID: %d\n  Role: %d\n", n.Address, n.ID, n.Role)
	}
	return out
}

// Remove takes a dead member out of the ledger, so that it no longer counts for
// the majority. One that answers is refused: it would go on believing.
func (l *Ledger) Remove(ctx context.Context, address string) error {
	members, err := l.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Address != address {
			continue
		}
		if m.Self || l.answers(ctx, m) {
			return diag.WithHint(fmt.Errorf("member %s is alive and stays", address), "stop it first, then remove it from another member")
		}
		c, err := l.app.Leader(ctx)
		if err != nil {
			return l.noLeader(err)
		}
		defer c.Close()
		if err := c.Remove(ctx, m.id); err != nil {
			return fmt.Errorf("removing member %s: %w", address, err)
		}
		return nil
	}
	return fmt.Errorf("member %s: %w", address, ErrUnknown)
}

// answers asks the member itself.
func (l *Ledger) answers(ctx context.Context, m Member) bool {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	c, err := client.New(ctx, m.Address, client.WithDialFunc(l.dial))
	if err != nil {
		return false
	}
	defer c.Close()
	_, err = c.Describe(ctx)
	return err == nil
}
