// Package adopt learns from a living cluster what it is recognised by, and writes it
// into the ledger. It only reads: a ledger that was lost, or never was, is made again
// beside a cluster of which nothing is touched.
package adopt

import (
	"context"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Reader reads objects of the cluster; Metadata leaves out what Secrets hold.
type Reader interface {
	Get(ctx context.Context, r object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
	Metadata(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error)
}

// Etcd tells who the members of etcd are.
type Etcd interface {
	State(ctx context.Context) (member.State, error)
}

// Ledger keeps the record. Known is nil when there is none.
type Ledger interface {
	Known(ctx context.Context, environment string) (*identity.Cluster, error)
	PutCluster(ctx context.Context, c identity.Cluster) error
}

// Sources are where a cluster is seen. With a kubeconfig alone there is no way to etcd
// and the nodes; what they would tell is taken from the API, as far as it is there.
type Sources struct {
	Environment string
	Name        string
	Reader      Reader
	Etcd        Etcd                                   // nil when it cannot be reached
	Nodes       func(ctx context.Context) []facts.Seen // nil without SSH
	Now         func() time.Time
}

// Layer is what the step belongs to.
const Layer = "adopt"

// found is the record and the cluster.
type found struct {
	recorded *identity.Cluster
	seen     identity.Cluster
}

// Step makes the ledger know the cluster. It refuses another cluster than the recorded
// one. What changes every day, such as the revision that Flux has applied, is written
// down with the rest and is no reason to write by itself.
func Step(s Sources, l Ledger) sequence.Step {
	step := sequence.Step{
		Layer: Layer, Name: "the ledger knows this cluster", Deadline: time.Minute,
		Blind: []sequence.Change{{Verb: sequence.Create, What: "record of the cluster in the ledger", Why: "there is no cluster yet"}},
	}
	return sequence.Of(step, func(ctx context.Context) (f found, err error) {
		if f.recorded, err = l.Known(ctx, s.Environment); err != nil {
			return f, err
		}
		f.seen, err = See(ctx, s)
		return f, err
	}, plan, func(ctx context.Context, f found, _ sequence.Tell) error {
		c := f.seen
		if f.recorded != nil {
			c = identity.Merged(*f.recorded, c)
		}
		return l.PutCluster(ctx, c)
	})
}

func plan(f found) ([]sequence.Change, error) {
	if f.recorded == nil {
		why := "a cluster lives and the ledger knows none: it is taken as it is (CA " + f.seen.CA.Short() + ")"
		return []sequence.Change{{Verb: sequence.Create, What: "record of cluster " + f.seen.Name + " in the ledger", Why: why}}, nil
	}
	if err := identity.Same(*f.recorded, f.seen); err != nil {
		return nil, err
	}
	var out []sequence.Change
	for _, d := range identity.Differences(*f.recorded, f.seen) {
		if !d.Passing {
			out = append(out, sequence.Change{Verb: sequence.Alter, What: "record of " + d.What + " in the ledger", Why: d.Why})
		}
	}
	return out, nil
}
