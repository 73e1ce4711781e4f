package install

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// maxSkew is how far the clock may be off before it is set. Less is the work of
// the node's time servers.
const maxSkew = 2 * time.Second

func (r *run) sendReport(ctx context.Context) error {
	type answer struct {
		reply machine.Reply
		at    time.Time
	}
	a, err := retry(ctx, r.env, "reporting", func(ctx context.Context) (answer, error) {
		reply, at, err := r.source.Report(ctx, r.report)
		return answer{reply, at}, err
	})
	if err != nil {
		return err
	}
	r.setClock(a.at)
	r.reply = a.reply
	if r.reply.Message != "" {
		r.env.Screen.Say(r.reply.Message)
	}
	if r.reply.Action != machine.ActionInstall {
		return errNotNow
	}
	return nil
}

// setClock takes over the other side's time: a mini-PC with an empty battery
// believes that it is 2009, and that no ticket has expired.
func (r *run) setClock(server time.Time) {
	if server.IsZero() {
		return
	}
	off := server.Sub(r.env.Clock.Now())
	if off.Abs() <= maxSkew {
		return
	}
	if err := r.env.Clock.Set(server); err != nil {
		r.env.Screen.Say(fmt.Sprintf("the clock is off by %s and cannot be set: %v", off.Round(time.Second), err))
		return
	}
	r.receipt.Started = r.receipt.Started.Add(off)
	r.env.Screen.Say(fmt.Sprintf("the clock was off by %s and was set to %s", off.Round(time.Second), server.UTC().Format(time.RFC3339)))
}

func (r *run) fetchTicket(ctx context.Context) error {
	ticket, err := retry(ctx, r.env, "fetching the ticket", r.source.Ticket)
	if err != nil {
		return err
	}
	r.ticket = ticket
	r.receipt.Ticket, r.receipt.Node, r.receipt.Index = ticket.ID, ticket.Node, ticket.Index
	switch {
	case ticket.Format != machine.TicketFormat:
		return refuse("the ticket has format %q, this installer knows %q", ticket.Format, machine.TicketFormat)
	case ticket.ID == "" || ticket.Node == "":
		return refuse("the ticket is not complete: it names no node")
	case ticket.Index.IsZero() || ticket.Key == "":
		return refuse("the ticket names neither index nor key, so that nothing can be verified")
	case !ticket.Expires.IsZero() && r.env.Clock.Now().After(ticket.Expires):
		return fmt.Errorf("%w: it expired at %s", ErrTicket, ticket.Expires.UTC().Format(time.RFC3339))
	}
	r.env.Screen.Say(fmt.Sprintf("this machine becomes node %s of cluster %s", ticket.Node, ticket.Cluster))
	return nil
}

func (r *run) fetchIndex(ctx context.Context) error {
	type signed struct{ index, signature []byte }
	s, err := retry(ctx, r.env, "fetching the index", func(ctx context.Context) (signed, error) {
		index, signature, err := r.source.Index(ctx)
		return signed{index, signature}, err
	})
	if err != nil {
		return err
	}
	key, err := artifact.ParseKey([]byte(r.ticket.Key))
	if err != nil {
		return refuse("the ticket's key: %v", err)
	}
	if r.index, err = verified(s.index, s.signature, r.ticket.Index, key); err != nil {
		return &Refused{Reasons: []string{words(err)}}
	}
	return nil
}

// verified reads an index that must be the one of the ticket and signed by its key.
func verified(index, signature []byte, want digest.Digest, key ed25519.PublicKey) (artifact.Index, error) {
	if err := digest.Check(want, digest.Of(index)); err != nil {
		return artifact.Index{}, diag.WithHint(fmt.Errorf("this is not the image that the ticket is for: %w", err),
			"the image was built anew after the machine was armed: arm it again")
	}
	if err := artifact.Verify(index, signature, key); err != nil {
		return artifact.Index{}, fmt.Errorf("signature of the image: %w", err)
	}
	return artifact.Decode(index)
}

// confirm asks a last time before the disk becomes bootable. A server that is away
// does not stop a disk that is right; one that says no does.
func (r *run) confirm(ctx context.Context) error {
	p := machine.Progress{Stage: machine.StageReadBack, Done: r.index.Disk.Size, Total: r.index.Disk.Size}
	_, err := retry(ctx, r.env, "asking", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.source.Progress(ctx, p)
	})
	if err != nil && final(err) {
		return err
	}
	return context.Cause(ctx)
}
