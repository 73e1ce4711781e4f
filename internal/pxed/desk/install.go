package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/seed"
)

// Report takes what a machine says about itself and tells it what to do. With a
// ticket that works it goes on with its install; without one it has been looked
// at and may go.
func (d *Desk) Report(ctx context.Context, token string, report machine.Report) (machine.Reply, error) {
	if err := report.Check(); err != nil {
		return machine.Reply{}, d.noted(ctx, "report", life.Record{}, err)
	}
	var reply machine.Reply
	var rec life.Record
	var no *machine.Refusal
	err := d.change(ctx, func(fleet []life.Record) (Change, error) {
		var c Change
		var err error
		c, rec, err = d.recognise(fleet, life.SightingOf(report), "report")
		if err != nil {
			return c, err
		}
		c.put(rec, "report", []string{fmt.Sprintf("sent its inventory: %d disks, %d network interfaces", len(report.Disks), len(report.NICs))}, d.now())
		c.Reports = map[machine.Key]machine.Report{rec.Key: report}
		reply, no = d.replyTo(rec, token)
		return c, nil
	})
	if err == nil && no != nil {
		d.note(ctx, "report", rec.Key, rec.Node, no)
	}
	return reply, d.noted(ctx, "report", rec, err)
}

// replyTo says what the machine does next, and why it does not install although it
// came to do so.
func (d *Desk) replyTo(rec life.Record, token string) (machine.Reply, *machine.Refusal) {
	if token == "" {
		message := rec.Node + " is known, nothing was written"
		if rec.Node == "" {
			message = "inventory taken, nothing was written: " + rec.Why
		}
		return machine.Reply{Action: machine.ActionPowerOff, Message: message}, nil
	}
	var no *machine.Refusal
	if rec.Refused != "" { // says more than that such a machine has no ticket
		no = &machine.Refusal{Code: machine.CodeConflict, Reason: rec.Refused}
		return machine.Reply{Action: machine.ActionBootDisk, Message: no.Reason}, no
	}
	if errors.As(works(rec, token, d), &no) {
		return machine.Reply{Action: machine.ActionBootDisk, Message: no.Reason}, no
	}
	return machine.Reply{Action: machine.ActionInstall, Message: fmt.Sprintf("%s is armed, try %d of %d", rec.Node, rec.Grant.Tries, rec.Grant.MaxTries)}, nil
}

// works asks whether the token is the one that works now, by fetching the ticket
// with it and forgetting that.
func works(rec life.Record, token string, d *Desk) error {
	_, _, err := life.Apply(rec, life.Claim{Token: life.HashToken(token)}, d.now())
	return err
}

// Ticket gives the installer its order.
func (d *Desk) Ticket(ctx context.Context, token string) (machine.Ticket, error) {
	var ticket machine.Ticket
	err := d.byToken(ctx, "ticket", token, func(rec life.Record, hash digest.Digest, c *Change) (life.Record, []string, error) {
		if rec.Grant != nil && rec.Grant.Token == hash && rec.Grant.Order.Index != d.image.Index {
			return rec, nil, d.anotherImage(rec)
		}
		after, out, err := life.Apply(rec, life.Claim{Token: hash}, d.now())
		if out.Ticket != nil {
			ticket = *out.Ticket
			ticket.ID = token
		}
		return after, out.Notes, err
	})
	return ticket, err
}

func (d *Desk) anotherImage(rec life.Record) error {
	return &machine.Refusal{
		Code:   CodeImage,
		Reason: fmt.Sprintf("%s was armed for image %s, but %s is served now", rec.Node, rec.Grant.Order.Index.Short(), d.image.Index.Short()),
		Hint:   "arm it again: pxed arm " + rec.Node,
	}
}

// Seed gives the installer the seed of its node, once: to the start of the machine
// that asks first, and to that one again should it ask again.
func (d *Desk) Seed(ctx context.Context, token, start string) (machine.Seed, error) {
	event := life.TakeSeed{Token: life.HashToken(token)}
	if start != "" {
		event.Start = life.HashToken(start)
	}
	var out machine.Seed
	err := d.byToken(ctx, "seed", token, func(rec life.Record, _ digest.Digest, _ *Change) (life.Record, []string, error) {
		after, outcome, err := life.Apply(rec, event, d.now())
		if err != nil {
			return after, outcome.Notes, err
		}
		out, err = d.seedOf(rec.Node)
		return after, outcome.Notes, err
	})
	return out, err
}

func (d *Desk) seedOf(name string) (machine.Seed, error) {
	node, err := d.node(name)
	if err != nil {
		return nil, err
	}
	docs, err := seed.For(d.cluster, node)
	if err != nil {
		return nil, err
	}
	return machine.Seed{
		seed.NameMetaData: string(docs.MetaData), seed.NameUserData: string(docs.UserData),
		seed.NameNetworkConfig: string(docs.NetworkConfig), seed.NameVendorData: string(docs.VendorData),
	}, nil
}

// Receipt takes the end of an install. The same one again is answered as the
// first time.
func (d *Desk) Receipt(ctx context.Context, token string, r machine.Receipt) (machine.Reply, error) {
	var reply machine.Reply
	err := d.byToken(ctx, "receipt", token, func(rec life.Record, hash digest.Digest, c *Change) (life.Record, []string, error) {
		if r.Ticket != token {
			return rec, nil, &machine.Refusal{Code: machine.CodeDocument, Reason: "receipt: it is one for another ticket"}
		}
		after, out, err := life.Apply(rec, life.Finish{Token: hash, Receipt: r}, d.now())
		if err != nil {
			return after, out.Notes, err
		}
		c.Receipts = map[machine.Key]machine.Receipt{rec.Key: r}
		reply = receiptReply(after)
		return after, append(out.Notes, r.Reasons...), nil
	})
	return reply, err
}

func receiptReply(rec life.Record) machine.Reply {
	if rec.State == life.StateInstalled {
		return machine.Reply{Action: machine.ActionBootDisk, Message: rec.Node + " is installed, boot the disk"}
	}
	return machine.Reply{Action: machine.ActionPowerOff, Message: rec.Node + " is not installed: " + rec.Failure}
}

// Ready takes the word of an installed node that it has reached its baseline.
func (d *Desk) Ready(ctx context.Context, token string, r machine.Ready) error {
	return d.byToken(ctx, "ready", token, func(rec life.Record, hash digest.Digest, _ *Change) (life.Record, []string, error) {
		after, out, err := life.Apply(rec, life.BecomeReady{Token: hash, Ready: r}, d.now())
		return after, out.Notes, err
	})
}

// byToken does something to the machine that has a ticket with this secret, or
// had. What is refused is written down.
func (d *Desk) byToken(ctx context.Context, kind, token string, do func(life.Record, digest.Digest, *Change) (life.Record, []string, error)) error {
	var rec life.Record
	err := d.change(ctx, func(fleet []life.Record) (Change, error) {
		var c Change
		var err error
		hash := life.HashToken(token)
		if rec, err = holder(fleet, kind, token, hash); err != nil {
			return c, err
		}
		after, notes, err := do(rec, hash, &c)
		c.put(after, kind, notes, d.now())
		return c, err
	})
	return d.noted(ctx, kind, rec, err)
}

// holder finds the machine that a token was given to.
func holder(fleet []life.Record, kind, token string, hash digest.Digest) (life.Record, error) {
	if token == "" {
		return life.Record{}, &machine.Refusal{Code: machine.CodeNone, Reason: kind + ": this needs a ticket", Hint: "only a machine that was armed has one: pxed arm NODE"}
	}
	for _, r := range fleet {
		if holds(r, hash) {
			return r, nil
		}
	}
	return life.Record{}, &machine.Refusal{Code: machine.CodeWrong, Reason: kind + ": this ticket is not known", Hint: "arm the node if it shall be imaged: pxed arm NODE"}
}

func holds(r life.Record, hash digest.Digest) bool {
	if r.Grant != nil && r.Grant.Token == hash || r.Installed != nil && r.Installed.Token == hash {
		return true
	}
	for _, s := range r.Spent {
		if s.Token == hash {
			return true
		}
	}
	return false
}
