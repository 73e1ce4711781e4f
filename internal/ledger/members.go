package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	Answers bool   `json:"answers"` // it is alive, and this member can reach it
	id      uint64
}

// Voter reports whether a majority is counted with the member.
func (m Member) Voter() bool { return m.Role == client.Voter.String() }

// Members lists those that hold the ledger, as its leader knows them, and asks each
// whether it is alive.
func (l *Ledger) Members(ctx context.Context) ([]Member, error) {
	nodes, leader, err := l.nodes(ctx)
	if err != nil {
		return nil, l.noLeader(err)
	}
	out := make([]Member, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		out[i] = Member{
			Address: n.Address, Role: n.Role.String(), id: n.ID,
			Leader: leader != nil && leader.ID == n.ID, Self: n.ID == l.app.ID(),
		}
		wait.Go(func() { out[i].Answers = out[i].Self || l.answers(ctx, out[i]) })
	}
	wait.Wait()
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
// the majority. One that answers is refused: it would go on believing that it is
// one; and so is a removal after which too few voters would answer. The errors wrap
// ErrUnknown or ErrStays. A member that is gone already is ErrUnknown, too.
func (l *Ledger) Remove(ctx context.Context, address string) error {
	members, err := l.Members(ctx)
	if err != nil {
		return err
	}
	gone, err := removable(members, address)
	if err != nil {
		return err
	}
	c, err := l.app.Leader(ctx)
	if err != nil {
		return l.noLeader(err)
	}
	defer c.Close()
	if err := c.Remove(ctx, gone.id); err != nil {
		return fmt.Errorf("removing member %s: %w", address, err)
	}
	return nil
}

// removable decides whether a member may be removed.
func removable(members []Member, address string) (Member, error) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.Address == address })
	if i < 0 {
		var all []string
		for _, m := range members {
			all = append(all, m.Address)
		}
		return Member{}, diag.WithHint(fmt.Errorf("member %.128q: %w", address, ErrUnknown), "its members are "+strings.Join(all, ", "))
	}
	gone := members[i]
	if gone.Self || gone.Answers {
		return gone, diag.WithHint(fmt.Errorf("%w: %s is alive, and would go on believing that it is a member", ErrStays, address),
			"stop its pxed first, then remove it from another member")
	}
	voters, answer := Majority(slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Address == address }))
	if need := voters/2 + 1; answer < need {
		return gone, diag.WithHint(fmt.Errorf("%w: without %s, %d of %d voting members have to answer, and %d do: nothing could be written any more", ErrStays, address, need, voters, answer),
			"bring the other members back first")
	}
	return gone, nil
}

// Majority counts the voting members, and those of them that answer. More than half
// of them have to, or nothing can be written.
func Majority(members []Member) (voters, answer int) {
	for _, m := range members {
		if m.Voter() {
			voters++
			if m.Answers {
				answer++
			}
		}
	}
	return voters, answer
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
