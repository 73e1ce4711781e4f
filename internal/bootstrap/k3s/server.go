package k3s

import (
	"context"
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// standing is what was seen of one node.
type standing struct {
	view
	k       facts.K3s
	unequal unequal
}

// votes makes a server a started voter of etcd.
func votes(o Options, name string) sequence.Step {
	step := sequence.Step{Layer: layer, Name: "is a voter of etcd", Node: name, Deadline: serverLimit}
	return sequence.Of(step,
		func(ctx context.Context) (standing, error) { return o.stand(ctx, name) },
		func(s standing) ([]sequence.Change, error) { return planServer(s, name) },
		func(ctx context.Context, s standing, tell sequence.Tell) error {
			defer o.changed(name)
			return o.startServer(ctx, s, name, tell)
		})
}

func (o Options) stand(ctx context.Context, name string) (standing, error) {
	v, err := o.look(ctx)
	if err != nil {
		return standing{}, err
	}
	s := standing{view: v, k: v.seen[name].Facts.K3s}
	if err := v.seen[name].Err; err != nil {
		return s, err
	}
	s.unequal, err = o.compare(ctx, v, v.node(name))
	return s, err
}

// planServer decides what has to be done so that a server votes. A step before must
// have made the others voters: a member that is missing or ill is a refusal of etcd's
// own rules, see package member.
func planServer(s standing, name string) ([]sequence.Change, error) {
	changes := s.unequal.changes
	switch {
	case s.decision.Init == name:
		return append(changes, create("cluster "+s.cluster.Name, "no node and no ledger knows one; %s starts it", name)), nil
	case s.living() && s.etcd == nil:
		return nil, s.etcdErr
	case s.etcd == nil && s.k.Knows():
		return append(changes, await(name, "k3s is on its way")), nil
	case s.etcd == nil:
		return append(changes, create("member of etcd on "+name, "it joins through %s", s.decision.Through(name))), nil
	}
	if !s.k.Knows() {
		// A blank node whose member is still listed is a lost one, which rebuild brings
		// back: k3s would be turned away, or etcd would wait for it for ever.
		if err := vacant(*s.etcd, s.server(name)); err != nil {
			return nil, err
		}
		return append(changes, create("member of etcd on "+name, "it joins through %s", s.decision.Through(name))), nil
	}
	done, words := member.Joined(*s.etcd, s.server(name))
	switch {
	case !s.k.Running():
		changes = append(changes, sequence.Change{Verb: sequence.Create, What: s.k.Unit + " on " + name, Why: "it is " + s.k.State})
	case !done:
		changes = append(changes, await(name, words))
	case !s.k.Joined:
		changes = append(changes, await(name, "the cluster has not let it in as a node"))
	}
	return changes, nil
}

func await(node, why string) sequence.Change {
	return sequence.Change{Verb: sequence.Await, What: "k3s on " + node, Why: why}
}

// vacant refuses a node whose place in etcd is taken by what it was before.
func vacant(state member.State, server member.Server) error {
	for _, m := range state.Members {
		if m.At(server) {
			return refuse("bootstrap rebuild "+server.Name+" removes what it was and brings it back",
				"%s holds no data, but etcd still has a member there: %s", server.Name, m)
		}
	}
	return nil
}

// startServer writes the configuration, starts k3s, and waits until the server votes.
func (o Options) startServer(ctx context.Context, s standing, name string, tell sequence.Tell) error {
	if s.etcd != nil && !s.k.Knows() {
		if err := member.MayJoin(*s.etcd, s.servers(), name); err != nil {
			return err
		}
	}
	if err := o.write(ctx, name, s.unequal.files, tell); err != nil {
		return err
	}
	run, err := o.start(ctx, s, name, tell)
	if err != nil {
		return err
	}
	via := s.decision.Via
	if s.decision.Init == name || len(via) == 0 {
		via = []string{name}
	}
	if err := o.await(ctx, name, run, tell, func(ctx context.Context) (bool, string) {
		state, err := o.members(ctx, via)
		if err != nil {
			return false, "etcd does not answer yet: " + first(err.Error())
		}
		return member.Joined(*state, s.server(name))
	}); err != nil {
		return err
	}
	if s.decision.Init == name && o.Born != nil {
		return o.Born(ctx, name)
	}
	return nil
}

// disarmed takes the right to start a cluster out of the configuration of the server
// that used it. With its data it would do no harm; without, it would start a second
// cluster beside the others.
func disarmed(o Options, name string) sequence.Step {
	step := sequence.Step{
		Layer: layer, Name: "starts no cluster", Node: name, Deadline: configLimit,
		Blind: []sequence.Change{disarming},
	}
	return sequence.Of(step,
		func(ctx context.Context) (view, error) {
			v, err := o.look(ctx)
			if err == nil && v.decision.Init == name {
				err = sequence.ErrUnseen
			}
			return v, err
		},
		func(v view) ([]sequence.Change, error) {
			if !v.seen[name].Facts.K3s.Init {
				return nil, v.seen[name].Err
			}
			return []sequence.Change{disarming}, nil
		},
		func(ctx context.Context, v view, _ sequence.Tell) error {
			defer o.changed(name)
			config, err := k3sconf.Render(v.cluster, v.node(name), v.join(name))
			if err != nil {
				return err
			}
			if err := o.Node(name).Put(ctx, k3sconf.ConfigPath, 0o600, config); err != nil {
				return fmt.Errorf("on %s: %w", name, err)
			}
			return nil
		})
}

// disarming is the change of the step above.
var disarming = sequence.Change{Verb: sequence.Alter, What: k3sconf.ConfigPath, Why: "the right to start a cluster ends with the run that used it"}
