// Package desk is where pxed decides: it takes what machines and operators ask,
// lets package machine decide on the records of the ledger, in one transaction,
// and gives the answer. It speaks no protocol and keeps nothing but the progress
// of running installs, which is worth nothing after a restart.
package desk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Change is what a decision leads to. Everything in it is stored, or nothing.
type Change struct {
	Put      []life.Record
	Gone     []machine.Key
	Reports  map[machine.Key]machine.Report
	Receipts map[machine.Key]machine.Receipt // the ledger keeps them without their tickets
	Events   []Event                         // Seq is given by the ledger
}

// Records keeps what is known of machines.
type Records interface {
	// Change shows all records to decide and stores what it returns, in one
	// transaction; decide is called again when the transaction has to be repeated.
	// An error of decide is returned as it is, and nothing is stored.
	Change(ctx context.Context, decide func([]life.Record) (Change, error)) error
	// Machines are all records.
	Machines(ctx context.Context) ([]life.Record, error)
}

// Papers keeps the last documents of machines; nil means that there is none.
type Papers interface {
	Report(ctx context.Context, key machine.Key) (*machine.Report, error)
	Receipt(ctx context.Context, key machine.Key) (*machine.Receipt, error)
}

// Log keeps events in order.
type Log interface {
	// Events are those after a cursor, at most so many.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
	// LastEvent is the number of the newest, 0 when there is none.
	LastEvent(ctx context.Context) (int64, error)
}

// Ledger is all that the desk writes into.
type Ledger interface {
	Records
	Papers
	Log
}

// Image is what armed machines get.
type Image struct {
	Name  string        `json:"name"`
	Index digest.Digest `json:"index"`
	Plan  digest.Digest `json:"plan"`
	Key   string        `json:"key"` // that signed it, a line of a .pub file
}

// Options are what a Desk is made of.
type Options struct {
	Cluster  cluster.Cluster
	Image    Image
	Ledger   Ledger
	Members  Members // of the ledger; nil: it is asked of nobody
	Discover bool    // machines of no node may be started to report
	Now      func() time.Time
	Random   io.Reader // of secrets; nil is crypto/rand
	Wake     func(ctx context.Context, mac cluster.MAC) error
	Log      *slog.Logger // what happens, one line each; nil discards
}

// Desk answers machines and operators. It is safe for concurrent use.
type Desk struct {
	cluster  cluster.Cluster
	image    Image
	ledger   Ledger
	members  Members
	discover bool
	now      func() time.Time
	random   io.Reader
	wake     func(ctx context.Context, mac cluster.MAC) error
	log      *slog.Logger
	pulse    *pulse
	glance   glance

	mu       sync.Mutex
	progress map[machine.Key]*Progress
	said     map[string]time.Time // refusals that were written down lately
	seen     int64                // last event of the ledger that the pulse knows of
}

// New returns a desk.
func New(o Options) *Desk {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{
		cluster: o.Cluster, image: o.Image, ledger: o.Ledger, members: o.Members, discover: o.Discover, now: o.Now, random: o.Random, wake: o.Wake, log: o.Log,
		pulse: newPulse(), progress: map[machine.Key]*Progress{}, said: map[string]time.Time{},
	}
}

// patience bounds how long a decision may wait for the ledger. A machine that
// boots should not wait longer for what sends it to its disk anyway.
const patience = 10 * time.Second

// change runs a decision and tells those who watch. Refusals come back through
// no, because what led to one is stored too.
func (d *Desk) change(ctx context.Context, decide func(fleet []life.Record) (Change, error)) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var refused error
	var events []Event
	err := d.ledger.Change(ctx, func(fleet []life.Record) (Change, error) {
		c, err := decide(fleet)
		refused, events = nil, c.Events
		if no := (*machine.Refusal)(nil); errors.As(err, &no) {
			refused, err = err, nil
		}
		return c, err
	})
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	for _, e := range events {
		d.log.Info("event", "kind", e.Kind, "machine", string(e.Machine), "node", e.Node, "what", e.Text)
	}
	d.pulse.beat()
	return refused
}

func (d *Desk) policy() life.Policy {
	return life.Policy{Status: d.cluster.Status, Inventory: d.discover}
}

// secret makes a ticket's ID.
func (d *Desk) secret() (string, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(d.random, raw); err != nil {
		return "", fmt.Errorf("making a ticket: %w", err)
	}
	return hex.EncodeToString(raw), nil
}

func (d *Desk) node(name string) (cluster.Node, error) {
	var names []string
	for _, n := range d.cluster.Nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return cluster.Node{}, &machine.Refusal{
		Code: CodeNoNode, Reason: fmt.Sprintf("the profile has no node %.63q", name), Hint: fmt.Sprintf("its nodes are %s", list(names)),
	}
}

// Codes of refusals beside those of package machine.
const (
	CodeNoNode    machine.Code = "no-such-node"    // the profile has no node of this name
	CodeNoMachine machine.Code = "no-such-machine" // no such machine was ever seen
	CodeImage     machine.Code = "another-image"   // armed for an image that is not served
)

// Changed is closed when something has changed since it was asked for.
func (d *Desk) Changed() <-chan struct{} { return d.pulse.wait() }

// Healthy reports whether the ledger answers.
func (d *Desk) Healthy(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_, err := d.ledger.LastEvent(ctx)
	return err
}

// Tick ends what time has ended, and tells those who watch what other members of
// the ledger have done. It is to be called every second or so.
func (d *Desk) Tick(ctx context.Context) error {
	last, err := d.ledger.LastEvent(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	news := last != d.seen
	d.seen = last
	d.mu.Unlock()
	if news {
		d.pulse.beat()
	}
	return d.expire(ctx)
}

// expire looks first: most of the time there is nothing to write.
func (d *Desk) expire(ctx context.Context) error {
	fleet, err := d.ledger.Machines(ctx)
	if err != nil || !slices.ContainsFunc(fleet, func(r life.Record) bool { return lapsed(r, d.now()) }) {
		return err
	}
	return d.change(ctx, func(fleet []life.Record) (Change, error) {
		var c Change
		for _, r := range fleet {
			if lapsed(r, d.now()) {
				after, out, _ := life.Apply(r, life.Tick{}, d.now())
				c.put(after, "expire", out.Notes, d.now())
			}
		}
		return c, nil
	})
}

func lapsed(r life.Record, now time.Time) bool {
	return r.Grant != nil && r.Grant.End == "" && !now.Before(r.Grant.Order.Expires)
}

// put stores a record together with what happened to it.
func (c *Change) put(r life.Record, kind string, notes []string, now time.Time) {
	c.Put = append(c.Put, r)
	for _, note := range notes {
		c.Events = append(c.Events, Event{At: now, Machine: r.Key, Node: r.Node, Kind: kind, Text: note})
	}
}
