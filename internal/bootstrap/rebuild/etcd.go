package rebuild

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// saved wants a snapshot of this run. An agent has no part in etcd, and all the same
// something is deleted for it.
func (r *rebuild) saved() sequence.Step {
	observe := unless(r, func(ctx context.Context) (missing bool, err error) {
		has, err := r.Snapshots.Has(ctx, r.Run)
		return !has, err
	})
	return sequence.Of(r.step("etcd is saved", snapshotTime), observe, func(missing bool) ([]sequence.Change, error) {
		if !missing {
			return nil, nil
		}
		return []sequence.Change{{Verb: sequence.Create, What: "snapshot of etcd", Why: "before anything is taken from the cluster"}}, nil
	}, func(ctx context.Context, _ bool, tell sequence.Tell) error {
		return r.Snapshots.Ensure(ctx, r.Run, "before "+r.Node.Name+" is rebuilt", tell)
	})
}

// place is what the node still has of etcd and k3s.
type place struct {
	removal member.Removal
	runs    bool // k3s runs there, or starts when it boots
}

// heldConfig is where k3s's configuration is put so that it does not start again: a
// server that finds itself removed joins anew by itself, with what it has on disk.
const heldConfig = k3sconf.ConfigPath + ".before-rebuild"

// outOfEtcd takes the node's member out of etcd, and k3s from its disk's boot. The
// configuration goes first, so that a killed run leaves no server that comes back;
// the member next, while it still answers and costs nothing; then k3s is stopped.
func (r *rebuild) outOfEtcd() sequence.Step {
	name := "k3s does not run there any more"
	if r.server() {
		name = "it has left etcd"
	}
	return sequence.Of(r.step(name, etcdTime), unless(r, r.place), r.leaving, r.leave)
}

func (r *rebuild) place(ctx context.Context) (p place, err error) {
	if r.server() {
		if p.removal, err = r.removal(ctx); err != nil {
			return p, err
		}
	}
	unit := k3sconf.Unit(r.Node.Role)
	out, unreachable := r.ask(ctx, fmt.Sprintf("systemctl is-active %s; test -e %s && echo configured; true", unit, k3sconf.ConfigPath))
	state, configured, _ := strings.Cut(out, "\n")
	p.runs = unreachable == nil && (strings.TrimSpace(configured) != "" || state != "inactive" && state != "failed" && state != "unknown")
	return p, nil
}

func (r *rebuild) removal(ctx context.Context) (member.Removal, error) {
	nodes, err := r.Reader.List(ctx, "v1", "Node", "", "")
	if err != nil {
		return member.Removal{}, err
	}
	state, err := r.Etcd.State(ctx)
	if err != nil {
		return member.Removal{}, err
	}
	return member.Remove(state, verdict.Servers(r.Cluster, nodes), r.Node.Name)
}

func (r *rebuild) leaving(p place) ([]sequence.Change, error) {
	var out []sequence.Change
	for _, m := range p.removal.Learners {
		out = append(out, sequence.Change{Verb: sequence.Destroy, What: "learner of etcd " + m.String(), Why: "nobody is behind it, and a new one has no place beside it"})
	}
	if m := p.removal.Voter; m != nil {
		out = append(out, sequence.Change{Verb: sequence.Destroy, What: "member of etcd " + m.String(), Why: "its successor cannot join beside it"})
	}
	if p.runs {
		out = append(out, sequence.Change{Verb: sequence.Alter, What: "k3s on " + r.Node.Name, Why: "is stopped and does not start again"})
	}
	return out, nil
}

func (r *rebuild) leave(ctx context.Context, p place, tell sequence.Tell) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	if p.runs {
		tell("for " + r.Node.Name + " to put its k3s configuration aside")
		hold := fmt.Sprintf("if test -e %[1]s; then mv -f %[1]s %[2]s; fi", k3sconf.ConfigPath, heldConfig)
		if _, err := r.ask(ctx, hold); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, tell); err != nil {
		return err
	}
	if p.runs {
		tell("for k3s on " + r.Node.Name + " to stop")
		if _, err := r.ask(ctx, "systemctl stop "+k3sconf.Unit(r.Node.Role)); err != nil {
			return err
		}
	}
	return r.settled(ctx, tell)
}

// remove decides once more, on the newest list, and gives the configuration back when
// the answer is no: a server that is not removed has to come up again.
func (r *rebuild) remove(ctx context.Context, tell sequence.Tell) error {
	if !r.server() {
		return nil
	}
	removal, err := r.removal(ctx)
	if err != nil {
		_, undone := r.ask(ctx, fmt.Sprintf("if test -e %[2]s; then mv -f %[2]s %[1]s; fi", k3sconf.ConfigPath, heldConfig))
		if undone != nil {
			return fmt.Errorf("%w (and its configuration lies at %s on %s)", err, heldConfig, r.Node.Name)
		}
		return err
	}
	for _, m := range removal.Learners {
		tell("for etcd to remove the learner " + m.String())
		if err := r.Etcd.Remove(ctx, m.ID); err != nil {
			return err
		}
	}
	if m := removal.Voter; m != nil {
		tell("for etcd to remove " + m.String())
		return r.Etcd.Remove(ctx, m.ID)
	}
	return nil
}

// settled waits until those that stay have a leader and are healthy: who was removed
// may have led them.
func (r *rebuild) settled(ctx context.Context, tell sequence.Tell) error {
	if !r.server() {
		return nil
	}
	for {
		removal, err := r.removal(ctx)
		if err == nil && removal.Empty() {
			return nil
		}
		words := "for the other members of etcd to go on"
		if err != nil {
			words += ": " + err.Error()
		}
		tell(words)
		if err := r.Pause(ctx); err != nil {
			return err
		}
	}
}

// rejected is what k3s says when the cluster has another password of the node.
const rejected = "Node password rejected"

// votes are the steps that see the node arrive: a server votes, an agent registers.
func (r *rebuild) votes() []sequence.Step {
	if !r.server() {
		return []sequence.Step{sequence.Until(r.step("it is a node of the cluster", voteTime), r.registers, r.Pause)}
	}
	return []sequence.Step{sequence.Until(r.step("it votes in etcd", voteTime), r.arrives, r.Pause)}
}

func (r *rebuild) arrives(ctx context.Context) ([]sequence.Change, error) {
	nodes, err := r.Reader.List(ctx, "v1", "Node", "", "")
	if err != nil {
		return nil, err
	}
	state, err := r.Etcd.State(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range verdict.Servers(r.Cluster, nodes) {
		if v.Name != r.Node.Name {
			continue
		}
		done, words := member.Joined(state, v)
		if done {
			return nil, nil
		}
		return r.awaited(ctx, words)
	}
	return r.awaited(ctx, "its address is not known")
}

func (r *rebuild) registers(ctx context.Context) ([]sequence.Change, error) {
	_, err := r.Reader.Get(ctx, object.Ref{APIVersion: "v1", Kind: "Node", Name: r.Node.Name})
	if there, err := exists(err); there || err != nil {
		return nil, err
	}
	return r.awaited(ctx, "it has not registered")
}

// awaited looks into k3s's journal for the one reason that waiting never mends.
func (r *rebuild) awaited(ctx context.Context, words string) ([]sequence.Change, error) {
	log, err := r.ask(ctx, "journalctl --boot --no-pager --output=cat --since=-60s --unit="+k3sconf.Unit(r.Node.Role))
	if err != nil {
		words += " (and its journal cannot be read: " + err.Error() + ")"
	}
	if strings.Contains(log, rejected) {
		return nil, passwordRejected(r.Node.Name)
	}
	return []sequence.Change{{Verb: sequence.Await, What: r.Node.Name, Why: words}}, nil
}
