package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/run"
	"github.com/slipway/slipway/internal/sequence"
)

// look sees everything that the decision depends on.
func (r *rebuild) look(ctx context.Context) (verdict.Sight, error) {
	s := verdict.Sight{Cluster: r.Cluster, Node: r.Node, Drain: r.Drain, Run: r.Run}
	var err error
	if s.Rebuilds, err = r.Runs.Runs(ctx, run.Filter{Story: Story, Open: true}); err != nil {
		return s, err
	}
	if s.Machine, err = r.Machines.Machine(ctx, r.Node.Name); err != nil {
		return s, fmt.Errorf("asking pxed about the machine of %s: %w", r.Node.Name, err)
	}
	if s.Nodes, err = r.Reader.List(ctx, "v1", "Node", "", ""); err != nil {
		return s, err
	}
	if r.server() {
		if s.Members, err = r.Etcd.State(ctx); err != nil {
			return s, err
		}
	}
	if s.Storage, err = r.storage(ctx); err != nil {
		return s, err
	}
	_, s.Unreachable = r.ask(ctx, "true")
	return s, nil
}

// storage reads what Longhorn says, and what lies beside it. A cluster without
// Longhorn has no such kinds, and so no objects.
func (r *rebuild) storage(ctx context.Context) (volume.Storage, error) {
	var s volume.Storage
	for _, l := range []struct {
		kind string
		into *[]map[string]any
	}{{"Volume", &s.Volumes}, {"Replica", &s.Replicas}, {"Engine", &s.Engines}, {"Node", &s.Nodes}} {
		found, err := r.Reader.List(ctx, volume.API, l.kind, volume.Namespace, "")
		if err != nil {
			return s, err
		}
		*l.into = found
	}
	var err error
	s.Claimed, err = r.Reader.List(ctx, "v1", "PersistentVolume", "", "")
	return s, err
}

// ask runs a command on the node; a node that is off is found out soon.
func (r *rebuild) ask(ctx context.Context, command string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, questionLimit)
	defer stop()
	n, err := r.Reach(ctx)
	if err != nil {
		return "", err
	}
	out, err := n.Run(ctx, command, nil)
	return string(out), err
}

// fresh reports whether this run has installed the machine. From then on the node is
// another one, and nothing of the first half is done again.
func (r *rebuild) fresh(ctx context.Context) (bool, error) {
	if r.installed {
		return true, nil
	}
	rec, err := r.Journal.Record(ctx)
	if err != nil {
		return false, err
	}
	_, since, armed := noted(rec.Step(stepArmed).Note)
	if r.installed = rec.Step(stepInstalled).State == stateDone; r.installed || !armed {
		return r.installed, nil
	}
	m, err := r.Machines.Machine(ctx, r.Node.Name)
	if err != nil {
		return false, fmt.Errorf("asking pxed about the machine of %s: %w", r.Node.Name, err)
	}
	r.installed = m.Done(since)
	return r.installed, nil
}

// guard is Judge once more, right before something is destroyed.
func (r *rebuild) guard(ctx context.Context) error {
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	return verdict.Judge(s)
}

// safe is the first look. It does nothing.
func (r *rebuild) safe() sequence.Step {
	s := r.step("nothing forbids it", 0)
	s.Observe = func(ctx context.Context) ([]sequence.Change, error) {
		if fresh, err := r.fresh(ctx); err != nil || fresh {
			return nil, err
		}
		return nil, r.guard(ctx)
	}
	return s
}

// Steps of the run's record that are looked at again, and their states.
const (
	stepCluster   = "cluster"   // its note says which cluster this is
	stepArmed     = "armed"     // its note is the last arming, and what was installed before it; see noted
	stepInstalled = "installed" // done when the receipt has come
	stateDone     = "done"
)

// which says which cluster this is: what a rebuild must not change.
func (r *rebuild) which(ctx context.Context) (string, error) {
	ns, err := r.Reader.Get(ctx, object.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	if err != nil {
		return "", err
	}
	text := "kube-system " + object.Text(ns, "metadata", "uid")
	if !r.server() {
		return text, nil
	}
	s, err := r.Etcd.State(ctx)
	return text + ", etcd " + s.Cluster.String(), err
}

// remembered writes down which cluster this is, to compare it in the end.
func (r *rebuild) remembered() sequence.Step {
	type which struct{ was, is string }
	return sequence.Of(r.step("which cluster it belongs to is written down", armTime),
		func(ctx context.Context) (w which, err error) {
			rec, err := r.Journal.Record(ctx)
			if err != nil {
				return w, err
			}
			w.was = rec.Step(stepCluster).Note
			w.is, err = r.which(ctx)
			return w, err
		},
		func(w which) ([]sequence.Change, error) {
			switch w.was {
			case w.is:
				return nil, nil
			case "":
				return []sequence.Change{{Verb: sequence.Create, What: "note in the ledger", Why: "the cluster is " + w.is + ", and must be so afterwards"}}, nil
			}
			return nil, anotherCluster(r.Node.Name, w.was, w.is)
		},
		func(ctx context.Context, w which, _ sequence.Tell) error {
			return r.Journal.Note(ctx, stepCluster, stateDone, w.is)
		})
}

// unchanged compares in the end. It does nothing.
func (r *rebuild) unchanged() sequence.Step {
	s := r.step("it is the same cluster as before", 0)
	s.Observe = func(ctx context.Context) ([]sequence.Change, error) {
		rec, err := r.Journal.Record(ctx)
		if err != nil {
			return nil, err
		}
		is, err := r.which(ctx)
		if err == nil && is != rec.Step(stepCluster).Note {
			err = anotherCluster(r.Node.Name, rec.Step(stepCluster).Note, is)
		}
		return nil, err
	}
	return s
}

func anotherCluster(node, was, is string) error {
	return no("the kubeconfig or the nodes' addresses lead to another cluster; look before anything else is done",
		"the cluster is not the one that the rebuild of %s began with: it was %s and is %s", node, was, is)
}

// exists tells a missing object from a question that failed.
func exists(err error) (bool, error) {
	if errors.Is(err, object.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
