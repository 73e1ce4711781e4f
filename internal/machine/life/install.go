package life

import (
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

func (r *Record) claim(e Claim, now time.Time, out *Outcome) (*machine.Ticket, error) {
	if err := r.verify("ticket", e.Token, now); err != nil {
		return nil, err
	}
	g := r.Grant
	if r.Refused != "" {
		return nil, machine.Refuse(machine.CodeConflict, "", "ticket: %s", r.Refused)
	}
	if g.Claimed.IsZero() {
		g.Claimed = now
		r.State, r.Progress, r.Turned = StateImaging, nil, nil
		if least := now.Add(InstallTime); g.Order.Expires.Before(least) {
			g.Order.Expires = least
		}
		out.note("%s has fetched its ticket, try %d of %d", r.Node, g.Tries, g.MaxTries)
	}
	order := g.Order
	return &order, nil
}

func (r *Record) takeSeed(e TakeSeed, now time.Time, out *Outcome) error {
	if err := r.claimed("seed", e.Token, now); err != nil {
		return err
	}
	g := r.Grant
	switch {
	case !g.Seeded:
		g.Seeded, g.SeededTo = true, e.Start
		out.note("%s has fetched its seed", r.Node)
	case g.SeededTo.IsZero() || g.SeededTo != e.Start:
		return machine.Refuse(machine.CodeTaken, "a restart of the machine begins anew, as its next try", "seed: it was handed out to this ticket already")
	default: // the same start: the answer was lost on the way
		out.note("%s has fetched its seed again", r.Node)
	}
	return nil
}

func (r *Record) advance(e Advance, now time.Time) error {
	if err := r.claimed("progress", e.Token, now); err != nil {
		return err
	}
	if err := e.Progress.Check(); err != nil {
		return err
	}
	p := e.Progress
	r.Progress, r.LastSeen = &p, now
	return nil
}

func (r *Record) claimed(op string, token digest.Digest, now time.Time) error {
	if err := r.verify(op, token, now); err != nil {
		return err
	}
	if r.Grant.Claimed.IsZero() {
		return machine.Refuse(machine.CodeUnclaimed, "", "%s: the ticket has to be fetched first", op)
	}
	return nil
}

// finish takes a receipt. The same receipt for the same ticket again is answered
// as the first time: the answer may have been lost.
func (r *Record) finish(e Finish, now time.Time, out *Outcome) error {
	sum := e.Receipt.Digest()
	if r.repeated(e.Token, sum) {
		return nil
	}
	if err := r.claimed("receipt", e.Token, now); err != nil {
		return err
	}
	if err := e.Receipt.Check(); err != nil {
		return err
	}
	if e.Receipt.Node != r.Node {
		return machine.Refuse(machine.CodeDocument, "", "receipt: it is of %s, the ticket is of %s", e.Receipt.Node, r.Node)
	}
	g, token := r.Grant, e.Token
	g.Receipt = sum
	r.LastSeen = now
	if why := shortfall(e.Receipt, g.Order); why != "" {
		g.Touched = g.Touched || e.Receipt.Written
		g.Claimed = time.Time{} // the receipt says what this try did
		r.fail(now, EndFailed, why)
		out.note("%s failed: %s", r.Node, why)
		return nil
	}
	r.end(EndUsed, now)
	r.State, r.Failure = StateInstalled, ""
	r.Installed = &Installed{At: now, Node: r.Node, Grant: g.ID, Token: token, Index: e.Receipt.Index, Disk: e.Receipt.Disk.ID(), DiskGUID: e.Receipt.DiskGUID}
	out.note("%s is installed on disk %s", r.Node, r.Installed.Disk)
	return nil
}

// repeated reports whether exactly this receipt consumed the last grant.
func (r *Record) repeated(token, sum digest.Digest) bool {
	if r.Grant == nil || r.Grant.Receipt.IsZero() || r.Grant.Receipt != sum {
		return false
	}
	n := len(r.Spent)
	return n > 0 && r.Spent[n-1].Token == token
}

// shortfall says what keeps a receipt from being one of success.
func shortfall(c machine.Receipt, order machine.Ticket) string {
	switch {
	case c.Error != "":
		return c.Error
	case !c.Written:
		return "the receipt says that nothing was written"
	case !c.ReadBack:
		return "the receipt says that the disk was not read back"
	case c.Index != order.Index:
		return fmt.Sprintf("another image was written: %s instead of %s", c.Index.Short(), order.Index.Short())
	}
	return ""
}

func (r *Record) becomeReady(e BecomeReady, now time.Time, out *Outcome) error {
	if err := e.Ready.Check(); err != nil {
		return err
	}
	i := r.Installed
	switch {
	case r.State != StateInstalled || i == nil:
		return machine.Refuse(machine.CodeNone, "", "ready: %s is %s, not installed", r.Key, r.State)
	case i.Token != e.Token:
		return machine.Refuse(machine.CodeWrong, "", "ready: this is not the ticket that %s was installed with", r.Node)
	case e.Ready.Node != r.Node:
		return machine.Refuse(machine.CodeDocument, "", "ready: it is of %s, the ticket is of %s", e.Ready.Node, r.Node)
	}
	r.LastSeen = now
	if i.ReadyAt.IsZero() {
		ready := e.Ready
		i.ReadyAt, i.Ready = now, &ready
		out.note("%s is ready", r.Node)
	}
	return nil
}
