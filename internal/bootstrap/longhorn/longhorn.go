// Package longhorn makes replicated storage. The order matters:
//
//   - the data disks are mounted before k3s starts, which is package disks' work: what
//     is written below the path of a disk that is not mounted goes to the system disk;
//   - the nodes are marked before the manager starts: it looks at a node's marks when
//     it sees the node for the first time, and makes a disk on the system disk for a
//     node that has none;
//   - then the chart, without waiting; then the wait for every disk.
//
// A build without the chart (it is in no Go module) has Longhorn's definitions only.
package longhorn

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

const (
	layer = "longhorn"
	// Namespace is where Longhorn lives.
	Namespace = longhornvalues.Namespace
)

// Wanted is something that the cluster shall have: what is missing, and how to make it.
type Wanted interface {
	Changes(context.Context) ([]sequence.Change, error)
	Apply(context.Context, sequence.Tell) error
}

// Reader reads objects of the cluster.
type Reader interface {
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Pause lets time pass between two looks.
type Pause func(context.Context) error

// Storage is the storage as it is wanted, and what the steps need to make it.
type Storage struct {
	Cluster     cluster.Cluster
	Marks       Wanted         // Marks(Cluster), on the nodes of the cluster
	Definitions Wanted         // of a build without the chart, else nil
	Namespace   Wanted         // the objects of Space
	Release     Wanted         // nil in a build without the chart
	Values      map[string]any // of the release
}

// Install are the steps that make the storage, once the disks are mounted.
func Install(s Storage) []sequence.Step {
	version := s.Cluster.Longhorn.Version
	marks := step("the nodes say which disks are for it", create("label and disk list of every node"), onNodes{s.Marks})
	if s.Release == nil {
		return []sequence.Step{marks,
			step("its definitions "+version+" are there; this build has no chart, so Longhorn itself is not installed", create("definitions of Longhorn "+version), s.Definitions)}
	}
	installed := step("the storage is installed", create("Helm release longhorn-system/longhorn"), s.Release)
	installed.Deadline = 5 * time.Minute
	installed.Observe = func(ctx context.Context) ([]sequence.Change, error) {
		if err := check(s); err != nil {
			return nil, err
		}
		return s.Release.Changes(ctx)
	}
	return []sequence.Step{marks, step("its namespace is there", create("Namespace "+Namespace), s.Namespace), installed}
}

func step(name string, blind []sequence.Change, w Wanted) sequence.Step {
	return sequence.Step{Layer: layer, Name: name, Deadline: 3 * time.Minute, Blind: blind, Observe: w.Changes, Do: w.Apply}
}

func create(what string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Create, What: what, Why: "there is no cluster yet"}}
}

// check refuses values with which Longhorn would use other disks than those that are
// for it, or could never place a volume's replicas.
func check(s Storage) error {
	if fmt.Sprint(object.At(s.Values, "defaultSettings", "createDefaultDiskLabeledNodes")) != "true" {
		err := fmt.Errorf("the values for Longhorn are refused: without defaultSettings.createDefaultDiskLabeledNodes it makes a disk on every node's system disk")
		return exit.With(exit.Refused, err)
	}
	if n := object.Int(s.Values, "persistence", "defaultClassReplicaCount"); n > int64(len(s.Cluster.Nodes)) {
		err := fmt.Errorf("the values for Longhorn are refused: persistence.defaultClassReplicaCount is %d with %d nodes; replicas of a volume never share a node", n, len(s.Cluster.Nodes))
		return exit.With(exit.Refused, diag.WithHint(err, "set longhorn.replicas to at most the number of nodes"))
	}
	return nil
}

// Marks are what the nodes must say before Longhorn's manager starts: that disks are
// made from the list, and the list. A node without data disks gets neither.
func Marks(c cluster.Cluster) ([]map[string]any, error) {
	var out []map[string]any
	for _, n := range c.Nodes {
		list, err := longhornvalues.Annotation(c, n)
		if err != nil {
			return nil, err
		}
		if list == "" {
			continue
		}
		out = append(out, map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{
				"name":        n.Name,
				"labels":      map[string]any{longhornvalues.DiskLabel: longhornvalues.DiskLabelValue},
				"annotations": map[string]any{longhornvalues.DiskAnnotation: list},
			},
		})
	}
	return out, nil
}

// onNodes are marks that are put on nodes and never make one: to apply a label to a
// node that has not registered would make it, without a machine behind it.
type onNodes struct{ marks Wanted }

// Changes are what is missing; a node that is missing is awaited.
func (o onNodes) Changes(ctx context.Context) ([]sequence.Change, error) {
	changes, err := o.marks.Changes(ctx)
	for i, c := range changes {
		if c.Verb == sequence.Create {
			changes[i] = sequence.Change{Verb: sequence.Await, What: c.What, Why: "has not registered"}
		}
	}
	return changes, err
}

// Apply marks the nodes when all of them are there.
func (o onNodes) Apply(ctx context.Context, tell sequence.Tell) error {
	changes, err := o.Changes(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Verb == sequence.Await {
			return fmt.Errorf("%s has not registered", c.What)
		}
	}
	return o.marks.Apply(ctx, tell)
}

// Space are the objects of Longhorn's namespace. Its pods mount the host's paths and
// are privileged, and a cluster may enforce otherwise by default.
func Space() []map[string]any {
	return []map[string]any{{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": Namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "privileged"}},
	}}
}
