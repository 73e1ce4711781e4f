package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/adopt"
	"github.com/slipway/slipway/internal/bootstrap/book"
	"github.com/slipway/slipway/internal/bootstrap/cilium"
	"github.com/slipway/slipway/internal/bootstrap/disks"
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/k3s"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/bootstrap/machines"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/rebuild"
	"github.com/slipway/slipway/internal/bootstrap/runlock"
	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/bootstrap/vip"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// Rebuild says how a node is rebuilt.
type Rebuild struct {
	Node  string
	Drain bool // the node may be alive; its pods are moved first
	Order verdict.Order
	Plan  bool // only show what would be done
}

// Rebuild takes a node out of the cluster and brings its machine back as the same
// node. The same command after a kill goes on. It returns how many steps did, or
// would do, something.
func (s *Session) Rebuild(ctx context.Context, p *material.Payload, o Rebuild, on func(sequence.Event)) (did int, err error) {
	if err := s.Active(); err != nil {
		return 0, err
	}
	lock, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	b, err := s.book(ctx)
	if err != nil {
		return 0, err
	}
	if b.Pxed() == nil {
		return 0, exit.With(exit.Failed, diag.WithHint(errors.New("no pxed answers, and the machine has to be imaged by one"),
			"start it: pxed serve -p "+s.Profile+" --image "+s.Build+" -i INTERFACE"))
	}
	runner := sequence.Runner{Now: s.Now, On: on}
	if o.Plan {
		run, err := b.Look(ctx, rebuild.Story, o.Node)
		if err != nil {
			return 0, err
		}
		steps, err := s.rebuild(ctx, p, o, b, run)
		if err != nil {
			return 0, err
		}
		return runner.Plan(ctx, steps)
	}
	run, _, err := b.Begin(ctx, rebuild.Story, o.Node, runlock.Self(s.Now()).String(), s.Now())
	if err != nil {
		return 0, err
	}
	steps, err := s.rebuild(ctx, p, o, b, run)
	if err != nil {
		return 0, err
	}
	if did, err = runner.Run(ctx, steps); err != nil {
		return did, err // the run stays open: the next one goes on with it
	}
	return did, run.End(ctx, "done")
}

// Abandon ends the open run of a rebuild in the ledger; nothing else is changed.
func (s *Session) Abandon(ctx context.Context, node string) (err error) {
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	b, err := s.book(ctx)
	if err != nil {
		return err
	}
	run, err := b.Look(ctx, rebuild.Story, node)
	if err != nil {
		return err
	}
	if run.ID == "" {
		return diag.WithHint(fmt.Errorf("no rebuild of %s is open", node), "bootstrap status shows the cluster")
	}
	return run.End(ctx, "abandoned")
}

// rebuild lays the steps out.
func (s *Session) rebuild(ctx context.Context, p *material.Payload, o Rebuild, b *book.Book, run *book.Run) ([]sequence.Step, error) {
	r, err := s.Reader(s.Redactor)
	if err != nil {
		return nil, err
	}
	addressed, err := k3sconf.Addressed(s.Cluster, facts.Found(s.Cluster, s.survey.Ask(ctx, s.names()...)))
	if err != nil {
		return nil, err
	}
	target := s.node(o.Node)
	network, err := s.network(p)
	if err != nil {
		return nil, err
	}
	network.Nodes = []string{o.Node}
	open := kube.Open(s.open)
	options := rebuild.Options{
		Cluster: addressed, Node: named(addressed, o.Node), Drain: o.Drain, Order: o.Order, Run: run.ID,
		Reader: open, Changer: open, Etcd: living{s, o.Node}, Snapshots: s.snapshots(living{s, o.Node}, DefaultKeep),
		Machines: machines.Machines{Pxed: b.Pxed()}, Journal: run, Runs: b, Pause: pause,
		Reach: func(ctx context.Context) (rebuild.Node, error) {
			s.survey.Forget(o.Node) // it is another system by now
			_, err := target.host(ctx)
			return target, err
		},
		Join: s.joining(target.node, r), Network: cilium.Ready(network, open, s.agent, pause),
	}
	if options.Storage, err = s.stored(p, target.node); err != nil {
		return nil, err
	}
	steps := rebuild.Steps(options)
	return append(steps, adopt.Step(s.sources(), known{s})), nil
}

// stored are the waits for Longhorn's disks on a node; it is marked for them first. A
// build without Longhorn's chart has none.
func (s *Session) stored(p *material.Payload, n cluster.Node) ([]sequence.Step, error) {
	if !s.Cluster.Longhorn.Enabled || len(p.Longhorn) == 0 {
		return nil, nil
	}
	alone := s.Cluster
	alone.Nodes = []cluster.Node{n}
	marks, err := longhorn.Marks(alone)
	if err != nil {
		return nil, err
	}
	st := longhorn.Storage{Cluster: alone, Marks: kube.Marks{Open: s.open, Objects: marks}}
	return append(longhorn.Install(st)[:1], longhorn.Ready(st, kube.Open(s.open), pause)...), nil
}

// joining are the steps that bring an installed node into the cluster.
func (s *Session) joining(n cluster.Node, r *material.Reader) []sequence.Step {
	alone := s.Cluster
	alone.Nodes = []cluster.Node{n}
	steps := disks.Steps(alone, func(name string) disks.Node { return s.node(name) }, s.survey)
	steps = append(steps, k3s.Steps(s.k3s(r))...)
	return append(steps, vip.Steps(vip.Options{
		Cluster: s.Cluster, Node: func(name string) vip.Node { return s.node(name) }, Survey: s.survey, Pause: pause,
	})...)
}

func named(c cluster.Cluster, name string) cluster.Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	panic(fmt.Sprintf("no node %s", name)) // the caller has it from the profile
}
