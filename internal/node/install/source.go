package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipway/slipway/internal/machine"
)

// Source is where an install comes from: pxed, or a bundle on a stick.
type Source interface {
	Orders
	Build
	Desk
}

// Orders is who decides what happens to this machine.
type Orders interface {
	// Report says what the machine is. The time is that of the other side when
	// it answered; it is zero when the other side has no clock.
	Report(ctx context.Context, r machine.Report) (machine.Reply, time.Time, error)
	Ticket(ctx context.Context) (machine.Ticket, error)
	Seed(ctx context.Context) (machine.Seed, error)
}

// Build is the finished build that is installed. Nothing it gives is trusted.
type Build interface {
	Index(ctx context.Context) (index, signature []byte, err error)
	// Open reads a file of the build from an offset on.
	Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// Desk is who wants to know how it goes.
type Desk interface {
	Progress(ctx context.Context, p machine.Progress) error
	// Receipt returns nil when the receipt was acknowledged.
	Receipt(ctx context.Context, r machine.Receipt) error
}

// Errors of a source that trying again does not mend. Any other error may be a
// cut link or a server that is being restarted.
var (
	// ErrTicket: the ticket is not valid, or no longer.
	ErrTicket = errors.New("the ticket is not valid")
	// ErrAnswer: the other side understood and said no.
	ErrAnswer = errors.New("not to be had")
)

func final(err error) bool {
	var ours *unmendable
	return errors.Is(err, ErrTicket) || errors.Is(err, ErrAnswer) || errors.As(err, &ours)
}

// Patience is how often something is tried that may work the next time. The wait
// doubles from First to Longest.
type Patience struct {
	Tries   int
	First   time.Duration
	Longest time.Duration
	Total   time.Duration // of failures in a row, 0 for no bound; the try that is under way ends first
}

// DefaultPatience outlasts a server that is restarted, or a switch that reboots:
// three to four minutes. A server that is away refuses at once, and the tries count; on
// a dead link each try takes half a minute, and the time counts.
func DefaultPatience() Patience {
	return Patience{Tries: 24, First: 250 * time.Millisecond, Longest: 10 * time.Second, Total: 3 * time.Minute}
}

// wait is the pause after the n-th failure in a row, counted from 1.
func (p Patience) wait(n int) time.Duration {
	d := p.First
	for i := 1; i < n && d < p.Longest; i++ {
		d *= 2
	}
	return min(d, p.Longest)
}

// attempts counts failures in a row and pauses in between.
type attempts struct {
	patience Patience
	env      Env
	doing    string
	failed   int
	since    time.Time // of the first failure
}

// succeeded starts the count anew.
func (a *attempts) succeeded() { a.failed = 0 }

// again pauses after a failure. It returns the error to give up with, or nil when
// the thing shall be tried again.
func (a *attempts) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.failed++; a.failed == 1 {
		a.since = time.Now()
	}
	if final(err) {
		return err
	}
	if a.failed >= a.patience.Tries || a.patience.Total > 0 && time.Since(a.since) >= a.patience.Total {
		return fmt.Errorf("given up after %d tries: %w", a.failed, err)
	}
	pause := a.patience.wait(a.failed)
	a.env.Screen.Say(fmt.Sprintf("%s: %v; trying again in %s (%d of %d)", a.doing, err, pause, a.failed, a.patience.Tries-1))
	return a.env.Sleep(ctx, pause)
}

// retry does something until it works, an error is final, or patience ends.
func retry[T any](ctx context.Context, env Env, doing string, do func(context.Context) (T, error)) (T, error) {
	a := attempts{patience: env.Patience, env: env, doing: doing}
	for {
		v, err := do(ctx)
		if err == nil {
			return v, nil
		}
		if err := a.again(ctx, err); err != nil {
			return v, fmt.Errorf("%s: %w", doing, err)
		}
	}
}
