package longhorn

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Ready are the waits for every node's disks; none in a build without the chart.
func Ready(s Storage, cluster Reader, pause Pause) []sequence.Step {
	if s.Release == nil {
		return nil
	}
	var steps []sequence.Step
	for _, n := range s.Cluster.Nodes {
		mounts := longhornvalues.Mounts(s.Cluster, n)
		if len(mounts) == 0 {
			continue
		}
		steps = append(steps, sequence.Until(sequence.Step{
			Layer: layer, Name: "disks are ready", Node: n.Name, Deadline: 15 * time.Minute,
			Blind: await("disks of "+n.Name, "Longhorn is not installed yet"),
		}, func(ctx context.Context) ([]sequence.Change, error) {
			all, err := cluster.List(ctx, "longhorn.io/v1beta2", "Node", Namespace, "")
			if err != nil {
				return nil, err
			}
			return disks(n.Name, mounts, all)
		}, pause))
	}
	return steps
}

func await(what, why string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Await, What: what, Why: why}}
}

// disks judges what Longhorn says about a node: each of its disks is Ready and
// Schedulable, and there is no other that it would use.
func disks(node string, mounts []longhornvalues.Mount, all []map[string]any) ([]sequence.Change, error) {
	o := byName(all, node)
	if o == nil {
		return await("Longhorn on "+node, "its manager has not started there"), nil
	}
	spec, _ := object.At(o, "spec", "disks").(map[string]any)
	if err := foreign(node, mounts, spec); err != nil {
		return nil, err
	}
	var out []sequence.Change
	for _, m := range mounts {
		what := "disk " + m.Path + " of " + node
		key := keyOf(spec, m.Path)
		if key == "" {
			out = append(out, await(what, "Longhorn has not taken it; it looks at a node's list of disks as long as it knows none")...)
			continue
		}
		for _, kind := range []string{"Ready", "Schedulable"} {
			if c := object.ConditionOf(o, kind, "status", "diskStatus", key, "conditions"); !c.True() {
				out = append(out, await(what, "is not "+kind+": "+explain(c))...)
				break
			}
		}
	}
	return out, nil
}

// explain adds what to do to the one condition that waiting does not mend.
func explain(c object.Condition) string {
	if c.Reason == "DiskFilesystemChanged" || strings.Contains(c.Message, "diskUUID") {
		return c.String() + " (the disk is not the one that Longhorn knew: bootstrap rebuild takes the old one out)"
	}
	return c.String()
}

func byName(all []map[string]any, name string) map[string]any {
	at := slices.IndexFunc(all, func(o map[string]any) bool { return object.Of(o).Name == name })
	if at < 0 {
		return nil
	}
	return all[at]
}

func keyOf(spec map[string]any, where string) string {
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if path.Clean(object.Text(spec, key, "path")) == path.Clean(where) {
			return key
		}
	}
	return ""
}

// foreign refuses to go on while Longhorn puts data where none was meant to be, most
// likely on the system disk.
func foreign(node string, mounts []longhornvalues.Mount, spec map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		where := path.Clean(object.Text(spec, key, "path"))
		ours := slices.ContainsFunc(mounts, func(m longhornvalues.Mount) bool { return path.Clean(m.Path) == where })
		if ours || object.At(spec, key, "allowScheduling") == false {
			continue
		}
		err := fmt.Errorf("longhorn uses %s on %s, which is no data disk of the profile", where, node)
		return exit.With(exit.Refused, diag.WithHint(err, "in Longhorn's page, Node: disable scheduling for that disk, evict it and remove it; or add it to the profile"))
	}
	return nil
}
