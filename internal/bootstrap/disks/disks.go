// Package disks gives the nodes the data disks of the profile, before k3s starts. What
// is done with a disk the node decides itself, where it sees it: a blank one gets a
// file system of its own, one with data of Slipway is taken as it is, any other is
// refused.
package disks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
)

// limit is the deadline of one node's disks: the file system of a large and slow one
// takes a while.
const limit = 10 * time.Minute

// Node is a node to work on, as root.
type Node interface {
	Run(ctx context.Context, command string, stdin []byte) ([]byte, error)
}

// Survey asks nodes what they are, and remembers it until told to forget.
type Survey interface {
	Ask(ctx context.Context, names ...string) []facts.Seen
	Forget(names ...string)
}

// Steps are one step for each node that has data disks in the profile.
func Steps(c cluster.Cluster, node func(name string) Node, survey Survey) []sequence.Step {
	var steps []sequence.Step
	for _, n := range c.Nodes {
		if want := facts.Want(c, n); len(want.Disks) > 0 {
			steps = append(steps, taken(n.Name, want, node, survey))
		}
	}
	return steps
}

func taken(name string, want facts.Wanted, node func(string) Node, survey Survey) sequence.Step {
	return sequence.Of(sequence.Step{Layer: "disks", Name: "data disks are mounted", Node: name, Deadline: limit},
		func(ctx context.Context) (facts.Facts, error) {
			seen := survey.Ask(ctx, name)[0]
			return seen.Facts, seen.Err
		},
		func(f facts.Facts) ([]sequence.Change, error) { return plan(f, want) },
		func(ctx context.Context, _ facts.Facts, tell sequence.Tell) error {
			defer survey.Forget(name)
			order, err := json.Marshal(want)
			if err != nil {
				return err
			}
			tell("waiting for the node to look at its disks, and to make file systems on blank ones")
			if _, err := node(name).Run(ctx, "slipway-node data make -o json", order); err != nil {
				return refusal(err)
			}
			return nil
		})
}

// plan says what the node would do. It decides by the same rules as the node.
func plan(f facts.Facts, want facts.Wanted) ([]sequence.Change, error) {
	choices, err := diskselect.Running(f.Disks, want.Orders())
	if err != nil {
		return nil, exit.With(exit.Refused, diag.WithHint(err, "correct dataDisks in the profile, or the disk: what is on it is never written over"))
	}
	var changes []sequence.Change
	for i, c := range choices {
		w := want.Disks[i]
		kept := slices.IndexFunc(f.Data, func(m facts.Mount) bool { return m.Name == w.Name })
		disk := diskselect.Describe(c.Disk)
		switch {
		case c.Blank():
			changes = append(changes, sequence.Change{Verb: sequence.Create, What: "file system on " + disk, Why: fmt.Sprintf("it is blank; data disk %s goes to %s", w.Name, w.Path)})
		case kept < 0:
			changes = append(changes, sequence.Change{Verb: sequence.Create, What: "mount of " + disk, Why: fmt.Sprintf("it holds data and is taken as it is; data disk %s goes to %s", w.Name, w.Path)})
		case f.Data[kept].Serial != c.Disk.ID() || f.Data[kept].Path != w.Path:
			changes = append(changes, sequence.Change{Verb: sequence.Alter, What: "mount of " + disk, Why: fmt.Sprintf("data disk %s was %s at %s", w.Name, f.Data[kept].Serial, f.Data[kept].Path)})
		case !f.Data[kept].Mounted:
			changes = append(changes, sequence.Change{Verb: sequence.Create, What: "mount of " + disk, Why: "it is not mounted at " + w.Path})
		}
	}
	for _, m := range f.Data {
		if !slices.ContainsFunc(want.Disks, func(w facts.WantedDisk) bool { return w.Name == m.Name }) {
			changes = append(changes, sequence.Change{Verb: sequence.Alter, What: "data disk " + m.Name, Why: "the profile names it no more: from the next start on it is not mounted; nothing on it is written"})
		}
	}
	return changes, nil
}

// refusal keeps that it was the node who refused.
func refusal(err error) error {
	var ended interface{ ExitCode() int }
	if errors.As(err, &ended) && ended.ExitCode() == int(exit.Refused) {
		return exit.With(exit.Refused, err)
	}
	return err
}
