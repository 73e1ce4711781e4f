package rebuild

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/sequence"
)

// arming is what the step that arms has seen.
type arming struct {
	skip    bool
	id      string
	alive   bool
	machine verdict.Machine
}

func (r *rebuild) armed() sequence.Step {
	observe := unless(r, func(ctx context.Context) (a arming, err error) {
		rec, err := r.Journal.Record(ctx)
		if err != nil {
			return a, err
		}
		if a.machine, err = r.Machines.Machine(ctx, r.Node.Name); err != nil {
			return a, err
		}
		last, _, _ := noted(rec.Step(stepArmed).Note)
		a.id, a.alive = a.machine.Next(r.Run, last)
		return a, nil
	})
	return sequence.Of(r.step("its machine may be imaged, once", armTime), observe, func(a arming) ([]sequence.Change, error) {
		if a.id == "" || a.alive {
			return nil, nil
		}
		return []sequence.Change{{Verb: sequence.Destroy, What: "system disk of " + r.Node.Name, Why: r.imagedWhy(a.machine)}}, nil
	}, r.arm)
}

func (r *rebuild) imagedWhy(m verdict.Machine) string {
	why := "its machine is armed in pxed and imaged when it boots from the network; data disks are kept"
	if wiped := r.wiped(); len(wiped) > 0 {
		why = "its machine is armed in pxed and imaged when it boots from the network; the data disks at " + strings.Join(wiped, ", ") + " are wiped"
	}
	if m.State == life.StateFailed && m.Why != "" {
		why += " (the last try failed: " + m.Why + ")"
	}
	return why
}

// wiped are the paths of the data disks that the install wipes.
func (r *rebuild) wiped() []string {
	var out []string
	for _, d := range r.Node.Data {
		policy := d.Policy
		if r.Order.Data != "" {
			policy = r.Order.Data
		}
		if policy == cluster.PolicyWipe {
			out = append(out, r.Cluster.Longhorn.DataMount(d.Name))
		}
	}
	return out
}

func (r *rebuild) arm(ctx context.Context, a arming, tell sequence.Tell) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	// Written down first: an arming that nobody remembers would be repeated under the
	// same name when it has failed, and do nothing.
	if err := r.Journal.Note(ctx, stepArmed, "doing", note(a.id, a.machine.Installed)); err != nil {
		return err
	}
	tell("for pxed to arm the machine of " + r.Node.Name)
	order := r.Order
	order.ID = a.id
	if order.Valid == 0 {
		order.Valid = installTime
	}
	return r.Machines.Arm(ctx, r.Node.Name, order)
}

// note is an arming and when the machine was installed before it, by pxed's clock:
// an install after that is the one that is waited for.
func note(id string, before time.Time) string {
	return id + " after " + before.UTC().Format(time.RFC3339Nano)
}

func noted(text string) (id string, before time.Time, ok bool) {
	id, at, ok := strings.Cut(text, " after ")
	before, err := time.Parse(time.RFC3339Nano, at)
	return id, before, ok && err == nil
}

// imaged waits for the receipt. A machine that still runs the old system is started
// anew; one that is off is called by Wake-on-LAN, and by words.
func (r *rebuild) imaged() sequence.Step {
	s := r.step("its machine is imaged", installTime)
	s.Observe = func(ctx context.Context) ([]sequence.Change, error) {
		fresh, err := r.fresh(ctx)
		if err != nil || !fresh {
			return []sequence.Change{{Verb: sequence.Await, What: "receipt of " + r.Node.Name, Why: "its machine has to boot from the network"}}, err
		}
		rec, err := r.Journal.Record(ctx)
		if err != nil || rec.Step(stepInstalled).State == stateDone {
			return nil, err
		}
		return []sequence.Change{{Verb: sequence.Create, What: "note in the ledger", Why: "the receipt has come"}}, nil
	}
	s.Do = r.awaitReceipt
	return s
}

func (r *rebuild) awaitReceipt(ctx context.Context, tell sequence.Tell) error {
	called := false
	for {
		if fresh, err := r.fresh(ctx); fresh {
			return r.Journal.Note(ctx, stepInstalled, stateDone, "")
		} else if err != nil {
			tell(err.Error())
		} else if words, err := r.coming(ctx, &called); err != nil {
			return err
		} else {
			tell(words)
		}
		if err := r.Pause(ctx); err != nil {
			return err
		}
	}
}

// coming says where the machine is, and ends the wait when it will not come.
func (r *rebuild) coming(ctx context.Context, called *bool) (string, error) {
	m, err := r.Machines.Machine(ctx, r.Node.Name)
	switch {
	case err != nil:
		return err.Error(), nil
	case m.State == life.StateInstalled && m.End == life.EndUsed: // since the last look
		return "for pxed to write the receipt down", nil
	case !m.Live:
		return "", no(firstOf(m.Hint, "mend that, then give the same command again: it arms the machine anew"),
			"the machine of %s was not imaged: %s", r.Node.Name, firstOf(m.Why, "its arming has ended ("+string(m.End)+")"))
	case m.State == life.StateImaging:
		return fmt.Sprintf("for the install of %s: %s", r.Node.Name, firstOf(m.Said, "it has fetched its ticket")), nil
	}
	words := r.call(ctx, called)
	if m.Said != "" {
		words += "; " + m.Said
	}
	return words, nil
}

// call makes the machine boot, once, and says what it waits for.
func (r *rebuild) call(ctx context.Context, called *bool) string {
	words := fmt.Sprintf("for the machine of %s to boot from the network", r.Node.Name)
	if *called {
		return words + "; when it starts its disk instead, choose the network in its boot menu"
	}
	*called = true
	// The old system has no place in the cluster any more and ends in order.
	if _, err := r.ask(ctx, "systemctl reboot"); err == nil {
		return words + "; it was told to restart"
	}
	if err := r.Machines.Wake(ctx, r.Node.Name); err != nil {
		return words + ": switch it on (it could not be woken: " + err.Error() + ")"
	}
	return words + "; it was called by Wake-on-LAN, switch it on when it does not come"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// started waits for the new system to say that it has reached its baseline.
func (r *rebuild) started() sequence.Step {
	s := r.step("its new system has started", startTime)
	s.Blind = []sequence.Change{{Verb: sequence.Await, What: r.Node.Name, Why: "starts after its install"}}
	return sequence.Until(s, func(ctx context.Context) ([]sequence.Change, error) {
		if fresh, err := r.fresh(ctx); err != nil || !fresh {
			return nil, firstError(err, sequence.ErrUnseen)
		}
		m, err := r.Machines.Machine(ctx, r.Node.Name)
		if err != nil {
			return nil, err
		}
		if m.Ready.IsZero() || m.Ready.Before(m.Installed) {
			return []sequence.Change{{Verb: sequence.Await, What: r.Node.Name, Why: "was imaged at " + m.Installed.UTC().Format(time.RFC3339) + " and has not said yet that it is ready"}}, nil
		}
		if _, err := r.ask(ctx, "true"); err != nil {
			return []sequence.Change{{Verb: sequence.Await, What: r.Node.Name, Why: "is ready, but SSH does not reach it: " + err.Error()}}, nil
		}
		return nil, nil
	}, r.Pause)
}
