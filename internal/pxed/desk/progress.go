package desk

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Progress takes a sign of life of an install. The ticket is checked against the
// ledger each time; what it says is kept in memory, and written down when a new
// stage begins.
func (d *Desk) Progress(ctx context.Context, token string, p machine.Progress) error {
	fleet, err := d.ledger.Machines(ctx)
	if err != nil {
		return err
	}
	hash := life.HashToken(token)
	rec, err := holder(fleet, "progress", token, hash)
	if err != nil {
		return d.noted(ctx, "progress", rec, err)
	}
	event := life.Advance{Token: hash, Progress: p}
	if _, _, err := life.Apply(rec, event, d.now()); err != nil {
		return d.noted(ctx, "progress", rec, err)
	}
	if rec.Progress == nil || rec.Progress.Stage != p.Stage {
		if err := d.newStage(ctx, rec.Key, event); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.progress[rec.Key] = progressOf(p, d.now())
	d.mu.Unlock()
	d.pulse.beat()
	return nil
}

func (d *Desk) newStage(ctx context.Context, key machine.Key, e life.Advance) error {
	return d.change(ctx, func(fleet []life.Record) (Change, error) {
		var c Change
		for _, r := range fleet {
			if r.Key != key {
				continue
			}
			after, out, err := life.Apply(r, e, d.now())
			c.put(after, "progress", append(out.Notes, "stage "+string(e.Progress.Stage)), d.now())
			return c, err
		}
		return c, nil
	})
}

// repeatAfter is how long the same refusal is not written down again: a machine
// in a loop, or somebody who guesses, must not fill the ledger.
const repeatAfter = time.Minute

// maxSaid bounds how many refusals are remembered for that.
const maxSaid = 1024

// noted writes a refusal into the event log and passes every error on.
func (d *Desk) noted(ctx context.Context, kind string, rec life.Record, err error) error {
	var no *machine.Refusal
	if errors.As(err, &no) {
		d.note(ctx, kind, rec.Key, rec.Node, no)
	}
	return err
}

func (d *Desk) note(ctx context.Context, kind string, key machine.Key, node string, no *machine.Refusal) {
	if !d.news(kind + "\x00" + string(key) + "\x00" + string(no.Code) + "\x00" + no.Reason) {
		return
	}
	e := Event{At: d.now(), Machine: key, Node: node, Kind: kind, Code: string(no.Code), Text: no.Reason}
	// The refusal stands whether or not it can be written down. Who asked, and is
	// refused, is in the log of the listener that was asked.
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	_ = d.ledger.Change(ctx, func(fleet []life.Record) (Change, error) {
		c := Change{Events: []Event{e}}
		c.turnAway(fleet, e, no)
		return c, nil
	})
	d.pulse.beat()
}

// askedByMachine are the kinds of requests that come from machines, not from operators.
var askedByMachine = []string{"report", "ticket", "seed", "progress", "receipt", "ready"}

// turnAway lets the machine's record remember that it was refused.
func (c *Change) turnAway(fleet []life.Record, e Event, no *machine.Refusal) {
	i := slices.IndexFunc(fleet, func(r life.Record) bool { return r.Key == e.Machine })
	if i < 0 || !slices.Contains(askedByMachine, e.Kind) {
		return
	}
	if after, out, err := life.Apply(fleet[i], life.TurnAway{No: no}, e.At); err == nil {
		c.put(after, "expire", out.Notes, e.At) // notes come only of what time has ended
	}
}

func (d *Desk) news(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if at, ok := d.said[what]; ok && now.Sub(at) < repeatAfter {
		return false
	}
	if len(d.said) >= maxSaid {
		for k, at := range d.said {
			if now.Sub(at) >= repeatAfter {
				delete(d.said, k)
			}
		}
	}
	if len(d.said) >= maxSaid {
		return false
	}
	d.said[what] = now
	return true
}
