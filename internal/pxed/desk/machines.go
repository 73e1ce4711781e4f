package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// StateExpected is shown for a node of the profile whose machine was not seen yet.
const StateExpected life.State = "expected"

// Machines are all machines, those of nodes first, in the order of the profile,
// and a place for each node that has none yet.
func (d *Desk) Machines(ctx context.Context) ([]Machine, error) {
	fleet, err := d.ledger.Machines(ctx)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	for _, n := range d.cluster.Nodes {
		if slices.ContainsFunc(fleet, func(r life.Record) bool { return r.Node == n.Name }) {
			continue
		}
		if r, err := life.Expect(n); err == nil {
			r.State = StateExpected
			fleet = append(fleet, r)
		}
	}
	slices.SortStableFunc(fleet, func(a, b life.Record) int {
		return cmp.Or(cmp.Compare(d.place(a.Node), d.place(b.Node)), cmp.Compare(a.Key, b.Key))
	})
	out := make([]Machine, 0, len(fleet))
	for _, r := range fleet {
		m, err := d.view(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (d *Desk) place(node string) int {
	i := slices.IndexFunc(d.cluster.Nodes, func(n cluster.Node) bool { return n.Name == node })
	if i < 0 {
		return len(d.cluster.Nodes)
	}
	return i
}

// Machine is the machine of that node, key, MAC address or serial number.
func (d *Desk) Machine(ctx context.Context, name string) (Machine, error) {
	all, err := d.Machines(ctx)
	if err != nil {
		return Machine{}, err
	}
	mac, _ := machine.ParseMAC(name)
	for _, m := range all {
		if m.Node == name || string(m.Key) == name || mac != "" && slices.Contains(m.MACs, mac) || m.Identity.Serial == name && name != "" {
			return m, nil
		}
	}
	_, err = find(nil, name)
	return Machine{}, err
}

func (d *Desk) view(ctx context.Context, r life.Record) (Machine, error) {
	m := Machine{Key: r.Key, State: r.State, Node: r.Node, MACs: r.MACs, Identity: r.Identity, Refused: r.Refused, Seen: timeOf(r.LastSeen), Turned: r.Turned}
	var err error
	if m.Report, err = d.ledger.Report(ctx, r.Key); err != nil {
		return m, fmt.Errorf("ledger: %w", err)
	}
	if m.Receipt, err = d.ledger.Receipt(ctx, r.Key); err != nil {
		return m, fmt.Errorf("ledger: %w", err)
	}
	if r.Node != "" && r.State != StateExpected && !r.LastSeen.IsZero() {
		m.Bound = r.Why
	}
	if r.Installed != nil {
		m.Installed, m.Ready = timeOf(r.Installed.At), timeOf(r.Installed.ReadyAt)
	}
	if r.Installed != nil && r.Installed.Ready != nil {
		m.HostKeys = r.Installed.Ready.HostKeys
	}
	m.Grant = d.grant(r)
	m.Progress = d.running(r)
	m.Boots = life.DecideBoot(r, d.policy(), d.now()).Reason
	d.explain(&m, r)
	return m, nil
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (d *Desk) grant(r life.Record) *Grant {
	g := r.Grant
	if g == nil {
		return nil
	}
	return &Grant{
		ID:   g.ID,
		Live: g.Live(d.now()), Expires: g.Order.Expires, Tries: g.Tries, MaxTries: g.MaxTries, End: g.End,
		System: g.Order.System, Data: g.Order.Data, Overwrite: g.Order.Overwrite, Sanitize: g.Order.Sanitize,
	}
}

// running is where an install is: what this pxed heard last, else the stage that
// is in the ledger.
func (d *Desk) running(r life.Record) *Progress {
	// Until a new try has its ticket, what is known is how far the last one came.
	if r.State != life.StateImaging || r.Grant == nil || r.Grant.Claimed.IsZero() {
		return nil
	}
	d.mu.Lock()
	p := d.progress[r.Key]
	d.mu.Unlock()
	switch {
	case p != nil && !p.At.Before(r.Grant.Claimed):
		return p
	case r.Progress != nil:
		return progressOf(*r.Progress, r.LastSeen)
	}
	return nil
}

// explain says why a machine is not imaged or what went wrong, and what to do.
func (d *Desk) explain(m *Machine, r life.Record) {
	switch {
	case r.Refused != "":
		m.Why, m.Hint = r.Refused, "switch one of them off, or correct the profile; pxed forget "+string(r.Key)+" drops a machine that is gone"
	case r.State == life.StateFailed:
		m.Why, m.Hint = r.Failure, "look at its console, then: pxed arm "+r.Node
		d.explainReceipt(m)
	case r.Node == "":
		m.Why, m.Hint = r.Why, "to make it a node, put its MAC address into the profile and restart pxed"
	case r.State == life.StateArmed && r.Grant.Order.Index != d.image.Index:
		m.Why, m.Hint = d.anotherImage(r).Error(), "pxed arm "+r.Node
	case d.cluster.Status != cluster.StatusActive:
		m.Why, m.Hint = fmt.Sprintf("the profile is %s: nothing is armed", d.cluster.Status), "set status: active in the profile when its machines may be written"
	case r.State == life.StateBound || r.State == StateExpected:
		m.Why, m.Hint = r.Node+" is not armed: it boots its own disk", "to image it: pxed arm "+r.Node
	}
}

// explainReceipt adds what the machine itself said about its failure.
func (d *Desk) explainReceipt(m *Machine) {
	c := m.Receipt
	if c == nil || c.Error == "" {
		return
	}
	m.Reasons = c.Reasons
	if id := c.Disk.ID(); id != "" && len(c.Disk.Content) > 0 && !c.Written {
		m.Hint = fmt.Sprintf("if what is on disk %s may be destroyed: pxed arm %s --overwrite %s", id, m.Node, id)
	}
}

// States counts the machines in each state, also those in which there is none.
func (d *Desk) States(ctx context.Context) (map[string]int, error) {
	fleet, err := d.ledger.Machines(ctx)
	out := map[string]int{}
	for _, state := range []life.State{life.StateSeen, life.StateInventoried, life.StateBound, life.StateArmed, life.StateImaging, life.StateInstalled, life.StateFailed} {
		out[string(state)] = 0
	}
	for _, r := range fleet {
		out[string(r.State)]++
	}
	return out, err
}

// Events are what happened after a cursor.
func (d *Desk) Events(ctx context.Context, after int64, limit int) ([]Event, error) {
	return d.ledger.Events(ctx, after, limit)
}

// LastEvent is the number of the newest event.
func (d *Desk) LastEvent(ctx context.Context) (int64, error) { return d.ledger.LastEvent(ctx) }

// Status is what pxed serves.
type Status struct {
	Environment string         `json:"environment"`
	Cluster     string         `json:"cluster"`
	Status      cluster.Status `json:"status"`
	Nodes       []string       `json:"nodes"`
	Image       Image          `json:"image"`
	Discover    bool           `json:"discover"`
	Now         time.Time      `json:"now"`
}

// Status tells what is served. Machines set their clocks by Now.
func (d *Desk) Status(context.Context) (Status, error) {
	s := Status{
		Environment: d.cluster.Environment, Cluster: d.cluster.Name, Status: d.cluster.Status,
		Image: d.image, Discover: d.discover, Now: d.now().UTC(),
	}
	for _, n := range d.cluster.Nodes {
		s.Nodes = append(s.Nodes, n.Name)
	}
	return s, nil
}
