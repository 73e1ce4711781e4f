package desk

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Order is what an operator confirms when arming a node. All of it is optional.
type Order struct {
	ID        string           `json:"id,omitempty"`        // the same again is the same arming; default: random
	Seconds   int64            `json:"seconds,omitempty"`   // until it expires; default: DefaultValidity
	Tries     int              `json:"tries,omitempty"`     // default: life.DefaultTries
	Overwrite []string         `json:"overwrite,omitempty"` // serials or WWNs of disks with foreign data that may be destroyed
	Sanitize  machine.Sanitize `json:"sanitize,omitempty"`
	Data      cluster.Policy   `json:"data,omitempty"`    // of all data disks, in place of the profile's
	Replace   bool             `json:"replace,omitempty"` // also when the node is being imaged right now
}

// DefaultValidity is how long an armed node waits for its machine.
const DefaultValidity = time.Hour

// Arm lets the machine of a node be imaged once.
func (d *Desk) Arm(ctx context.Context, name string, o Order) (Machine, error) {
	node, err := d.node(name)
	if err != nil {
		return Machine{}, d.noted(ctx, "arm", life.Record{Node: name}, err)
	}
	if o.ID == "" {
		if o.ID, err = d.armingID(); err != nil {
			return Machine{}, err
		}
	}
	return d.onNode(ctx, "arm", node, func(rec life.Record) (life.Event, error) { return d.armEvent(node, o), nil })
}

func (d *Desk) armingID() (string, error) {
	raw := make([]byte, 8)
	if _, err := io.ReadFull(d.random, raw); err != nil {
		return "", fmt.Errorf("naming an arming: %w", err)
	}
	return hex.EncodeToString(raw), nil
}

func (d *Desk) armEvent(node cluster.Node, o Order) life.Arm {
	if o.Seconds == 0 {
		o.Seconds = int64(DefaultValidity / time.Second)
	}
	if o.Tries == 0 {
		o.Tries = life.DefaultTries
	}
	return life.Arm{
		ID: o.ID, Status: d.cluster.Status, MaxTries: o.Tries, Replace: o.Replace,
		Order: machine.Ticket{
			Format: machine.TicketFormat, Node: node.Name, Cluster: d.cluster.Name,
			Expires: d.now().Add(time.Duration(min(o.Seconds, 1<<31)) * time.Second).UTC(),
			Index:   d.image.Index, Key: d.image.Key, System: node.System, Data: machine.DataOrders(node, o.Data),
			Overwrite: o.Overwrite, Sanitize: o.Sanitize,
		},
	}
}

// Rearm arms a node again with the order that it had last.
func (d *Desk) Rearm(ctx context.Context, name string) (Machine, error) {
	node, err := d.node(name)
	if err != nil {
		return Machine{}, d.noted(ctx, "arm", life.Record{Node: name}, err)
	}
	id, err := d.armingID()
	if err != nil {
		return Machine{}, err
	}
	return d.onNode(ctx, "arm", node, func(rec life.Record) (life.Event, error) {
		g := rec.Grant
		if g == nil {
			return nil, &machine.Refusal{Code: machine.CodeNone, Reason: name + " was never armed", Hint: "pxed arm " + name}
		}
		e := d.armEvent(node, Order{ID: id, Tries: g.MaxTries, Overwrite: g.Order.Overwrite, Sanitize: g.Order.Sanitize})
		e.Order.Data = g.Order.Data
		return e, nil
	})
}

// Disarm takes the right to be imaged back.
func (d *Desk) Disarm(ctx context.Context, name string) (Machine, error) {
	node, err := d.node(name)
	if err != nil {
		return Machine{}, d.noted(ctx, "disarm", life.Record{Node: name}, err)
	}
	return d.onNode(ctx, "disarm", node, func(life.Record) (life.Event, error) {
		return life.Disarm{Reason: "by the operator"}, nil
	})
}

// onNode applies an event to the machine of a node, which may not have been seen yet.
func (d *Desk) onNode(ctx context.Context, kind string, node cluster.Node, make func(life.Record) (life.Event, error)) (Machine, error) {
	var after life.Record
	err := d.change(ctx, func(fleet []life.Record) (Change, error) {
		c, rec, err := d.ofNode(fleet, node, kind)
		after = rec
		if err != nil {
			return c, err
		}
		e, err := make(rec)
		if err != nil {
			return c, err
		}
		var out life.Outcome
		after, out, err = life.Apply(rec, e, d.now())
		if err == nil || !rec.LastSeen.IsZero() {
			c.put(after, kind, out.Notes, d.now())
		}
		return c, err
	})
	if err = d.noted(ctx, kind, after, err); err != nil {
		return Machine{}, err
	}
	return d.view(ctx, after)
}

// ofNode is the machine of a node, or one to be expected. What is known of machines
// that are or could be the node is judged anew first: since they were heard of the
// profile may have changed, and other machines may have come.
func (d *Desk) ofNode(fleet []life.Record, node cluster.Node, kind string) (Change, life.Record, error) {
	var c Change
	for _, r := range fleet {
		if r.LastSeen.IsZero() || !concerns(r, node) || slices.Contains(c.Gone, r.Key) {
			continue
		}
		one, err := d.review(fleet, r.Key, kind)
		if err != nil {
			return c, r, err
		}
		fleet = one.on(fleet)
		c.Put, c.Gone, c.Events = append(c.Put, one.Put...), append(c.Gone, one.Gone...), append(c.Events, one.Events...)
	}
	i := slices.IndexFunc(fleet, func(r life.Record) bool { return r.Node == node.Name })
	if i < 0 {
		rec, err := life.Expect(node)
		return c, rec, err
	}
	c.Put = without(c.Put, fleet[i].Key) // the caller goes on with it
	return c, fleet[i], nil
}

// concerns reports whether a machine is a node, or has a name that makes it one.
func concerns(r life.Record, node cluster.Node) bool {
	serial := machine.Usable(node.Serial)
	return r.Node == node.Name || serial != "" && machine.Usable(r.Identity.Serial) == serial ||
		slices.ContainsFunc(node.Interfaces, func(i cluster.Interface) bool { return slices.Contains(r.MACs, i.MAC) })
}

// on is the fleet after the change.
func (c Change) on(fleet []life.Record) []life.Record {
	for _, key := range c.Gone {
		fleet = without(fleet, key)
	}
	for _, r := range c.Put {
		fleet = append(without(fleet, r.Key), r)
	}
	return fleet
}

// Bind looks once more at which node a machine is, and refuses when it is not the
// one that is wanted: what a machine is, the profile says, and its seed would not
// fit any other.
func (d *Desk) Bind(ctx context.Context, name, node string) (Machine, error) {
	if _, err := d.node(node); err != nil {
		return Machine{}, d.noted(ctx, "bind", life.Record{}, err)
	}
	var after life.Record
	err := d.change(ctx, func(fleet []life.Record) (Change, error) {
		rec, err := find(fleet, name)
		if err != nil {
			return Change{}, err
		}
		c, err := d.review(fleet, rec.Key, "bind")
		if err != nil {
			return c, err
		}
		after = c.Put[len(c.Put)-1]
		return c, isNode(after, node)
	})
	if err = d.noted(ctx, "bind", after, err); err != nil {
		return Machine{}, err
	}
	return d.view(ctx, after)
}

func isNode(r life.Record, node string) error {
	switch {
	case r.Refused != "":
		return &machine.Refusal{Code: machine.CodeConflict, Reason: r.Refused, Hint: "see pxed show " + string(r.Key)}
	case r.Node == node:
		return nil
	}
	return &machine.Refusal{
		Code:   machine.CodeUnbound,
		Reason: fmt.Sprintf("machine %s is not %s: %s", r.Key, node, r.Why),
		Hint:   fmt.Sprintf("put one of its MAC addresses (%s) under %s's interfaces in the profile, and restart pxed with it", joinMACs(r.MACs), node),
	}
}

// Forget drops the record of a machine that is gone.
func (d *Desk) Forget(ctx context.Context, name string) error {
	var rec life.Record
	err := d.change(ctx, func(fleet []life.Record) (Change, error) {
		var err error
		if rec, err = find(fleet, name); err != nil {
			return Change{}, err
		}
		if rec.Grant.Live(d.now()) {
			return Change{}, &machine.Refusal{
				Code: machine.CodeBusy, Reason: rec.Node + " is armed: its machine is not forgotten", Hint: "pxed disarm " + rec.Node,
			}
		}
		e := Event{At: d.now(), Machine: rec.Key, Node: rec.Node, Kind: "forget", Text: "machine " + string(rec.Key) + " is forgotten"}
		c, err := d.reviewRefused(without(fleet, rec.Key))
		c.Gone, c.Events = append(c.Gone, rec.Key), append(c.Events, e)
		return c, err
	})
	return d.noted(ctx, "forget", rec, err)
}

func without(fleet []life.Record, key machine.Key) []life.Record {
	return slices.DeleteFunc(slices.Clone(fleet), func(r life.Record) bool { return r.Key == key })
}

// reviewRefused judges those machines anew that another one kept from being imaged.
func (d *Desk) reviewRefused(fleet []life.Record) (Change, error) {
	var all Change
	for _, r := range fleet {
		if r.Refused == "" {
			continue
		}
		c, err := d.review(fleet, r.Key, "bind")
		if err != nil {
			return all, err
		}
		all.Put, all.Gone, all.Events = append(all.Put, c.Put...), append(all.Gone, c.Gone...), append(all.Events, c.Events...)
	}
	return all, nil
}

// review judges a machine anew, without a request from it; its record is the last
// that the change stores.
func (d *Desk) review(fleet []life.Record, key machine.Key, kind string) (Change, error) {
	got, err := life.Review(fleet, key, d.cluster.Nodes, d.now())
	c := Change{Put: got.Changed, Gone: got.Gone}
	if err == nil {
		c.put(got.Record, kind, got.Notes, d.now())
	}
	return c, err
}

// Wake sends a node's machine the packet that switches it on, and returns where to.
func (d *Desk) Wake(ctx context.Context, name string) ([]string, error) {
	node, err := d.node(name)
	if err != nil {
		return nil, d.noted(ctx, "wake", life.Record{Node: name}, err)
	}
	if d.wake == nil {
		return nil, &machine.Refusal{Code: machine.CodeOrder, Reason: "this pxed sends no Wake-on-LAN packets", Hint: "start it with an interface: -i IFACE"}
	}
	var sent []string
	for _, i := range node.Interfaces {
		if slices.Contains(sent, string(i.MAC)) {
			continue
		}
		if err := d.wake(ctx, i.MAC); err != nil {
			return sent, err
		}
		sent = append(sent, string(i.MAC))
	}
	e := Event{At: d.now(), Node: name, Kind: "wake", Text: name + " is called to wake up: " + strings.Join(sent, ", ")}
	return sent, d.change(ctx, func([]life.Record) (Change, error) { return Change{Events: []Event{e}}, nil })
}

// find looks a machine up by node, key, MAC address or serial number.
func find(fleet []life.Record, name string) (life.Record, error) {
	mac, _ := machine.ParseMAC(name)
	for _, r := range fleet {
		if r.Node == name || string(r.Key) == name || mac != "" && slices.Contains(r.MACs, mac) || r.Identity.Serial == name && name != "" {
			return r, nil
		}
	}
	return life.Record{}, &machine.Refusal{Code: CodeNoMachine, Reason: fmt.Sprintf("no machine %.80q is known", name), Hint: "pxed machines lists them"}
}

func joinMACs(macs []cluster.MAC) string {
	var out []string
	for _, m := range macs {
		out = append(out, string(m))
	}
	return list(out)
}

func list(words []string) string { return strings.Join(words, ", ") }
