package longhorn

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/sequence"
)

// Disks speaks with the nodes about their data disks. Which disk is which, and what
// may be written to it, the node decides: it sees them.
type Disks interface {
	// Data are the disks that a node has taken, mounted or not.
	Data(ctx context.Context, node string) ([]facts.Mount, error)
	// Take has a node find its data disks, make file systems on blank ones, and mount
	// them now and at every boot, before k3s.
	Take(ctx context.Context, node string, w facts.Wanted) error
}

// Mounted are the steps that mount every node's data disks. They belong before k3s:
// what is written below the path of a disk that is not mounted goes to the system
// disk, and k3s requires the mounts.
func Mounted(c cluster.Cluster, disks Disks) []sequence.Step {
	known := &identities{of: map[string]string{}}
	var steps []sequence.Step
	for _, n := range c.Nodes {
		if len(facts.Want(c, n).Disks) == 0 {
			continue
		}
		steps = append(steps, sequence.Of(
			sequence.Step{Layer: layer, Name: "data disks are mounted", Node: n.Name, Deadline: 5 * time.Minute},
			func(ctx context.Context) ([]facts.Mount, error) { return disks.Data(ctx, n.Name) },
			func(is []facts.Mount) ([]sequence.Change, error) {
				if err := known.add(n.Name, is); err != nil {
					return nil, err
				}
				return missing(c, n, is), nil
			},
			func(ctx context.Context, _ []facts.Mount, tell sequence.Tell) error {
				tell("for " + n.Name + " to mount its data disks")
				return disks.Take(ctx, n.Name, facts.Want(c, n))
			}))
	}
	return steps
}

// missing compares a node's mounts with what the profile wants.
func missing(c cluster.Cluster, n cluster.Node, is []facts.Mount) []sequence.Change {
	var out []sequence.Change
	for _, want := range longhornvalues.Mounts(c, n) {
		what := fmt.Sprintf("data disk %s at %s", want.Disk, want.Path)
		at := slices.IndexFunc(is, func(m facts.Mount) bool { return m.Name == want.Disk })
		switch {
		case at < 0:
			out = append(out, sequence.Change{Verb: sequence.Create, What: what, Why: "the node has not taken it; a blank disk gets a file system"})
		case path.Clean(is[at].Path) != path.Clean(want.Path):
			out = append(out, sequence.Change{Verb: sequence.Alter, What: what, Why: "is at " + is[at].Path})
		case !is[at].Mounted:
			out = append(out, sequence.Change{Verb: sequence.Alter, What: what, Why: "is not mounted"})
		}
	}
	return out
}

// identities are the file systems seen so far, and whose they are.
type identities struct{ of map[string]string }

// add refuses a file system that another disk has as well. Longhorn knows disks by
// it: two nodes whose disks are equal take each other's replicas for their own.
func (i *identities) add(node string, mounts []facts.Mount) error {
	for _, m := range mounts {
		owner := fmt.Sprintf("data disk %s of %s", m.Name, node)
		if other := i.of[m.UUID]; m.UUID != "" && other != "" && other != owner {
			err := fmt.Errorf("%s and %s have the same file system, UUID %s", other, owner, m.UUID)
			return exit.With(exit.Refused, diag.WithHint(err, "one is a copy of the other; give the empty one another identity (unmounted: tune2fs -U random), or wipe it and begin anew"))
		}
		i.of[m.UUID] = owner
	}
	return nil
}
