package rebuild

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// disksForgotten takes those disks out of Longhorn that the install wipes: it knows a
// disk by what is written on it, and would wait for the old one for ever. Disks that
// are kept stay, with the replicas on them.
func (r *rebuild) disksForgotten() sequence.Step {
	observe := unless(r, func(ctx context.Context) ([]volume.Disk, error) {
		paths := r.wiped()
		if len(paths) == 0 {
			return nil, nil
		}
		s, err := r.storage(ctx)
		return slices.DeleteFunc(s.Disks(r.Node.Name), func(d volume.Disk) bool { return !d.Below(paths) }), err
	})
	return sequence.Of(r.step("Longhorn has forgotten the disks that are wiped", disksTime), observe, r.losing("is wiped by the install"),
		func(ctx context.Context, disks []volume.Disk, tell sequence.Tell) error {
			if err := r.guard(ctx); err != nil {
				return err
			}
			for _, d := range disks {
				if err := r.forgetDisk(ctx, d, tell); err != nil {
					return err
				}
			}
			return nil
		})
}

func (r *rebuild) losing(reason string) func([]volume.Disk) ([]sequence.Change, error) {
	return func(disks []volume.Disk) ([]sequence.Change, error) {
		var out []sequence.Change
		for _, d := range disks {
			if d.Key != "" {
				out = append(out, sequence.Change{Verb: sequence.Destroy, What: fmt.Sprintf("Longhorn's disk %s of %s", d.Key, r.Node.Name), Why: reason})
			}
			for _, name := range d.Replicas {
				out = append(out, sequence.Change{Verb: sequence.Destroy, What: "Replica " + name, Why: "its disk " + reason + "; it is built again from another one"})
			}
		}
		return out, nil
	}
}

func (r *rebuild) longhornRef(kind, name string) object.Ref {
	return object.Ref{APIVersion: volume.API, Kind: kind, Namespace: volume.Namespace, Name: name}
}

// forgetDisk goes Longhorn's own way: nothing is placed there any more, the replicas
// go, then the entry. Longhorn refuses the last as long as it has not seen the others.
func (r *rebuild) forgetDisk(ctx context.Context, d volume.Disk, tell sequence.Tell) error {
	for _, name := range d.Replicas {
		tell("for Longhorn to delete replica " + name)
		if err := r.Changer.Delete(ctx, r.longhornRef("Replica", name)); err != nil {
			return err
		}
	}
	for {
		there, words, err := r.drop(ctx, d)
		if err != nil || !there {
			return err
		}
		tell(fmt.Sprintf("for Longhorn to let go of disk %s of %s%s", firstOf(d.Key, d.UUID), r.Node.Name, words))
		if err := r.Pause(ctx); err != nil {
			return err
		}
	}
}

// drop takes the entry out of the node's object, and reports whether anything of the
// disk is still there.
func (r *rebuild) drop(ctx context.Context, d volume.Disk) (there bool, words string, err error) {
	s, err := r.storage(ctx)
	if err != nil {
		return true, ": " + err.Error(), ctx.Err()
	}
	for _, is := range s.Disks(r.Node.Name) {
		if is.UUID == d.UUID && len(is.Replicas) > 0 {
			return true, fmt.Sprintf("; %v are on it", is.Replicas), nil
		}
	}
	node := s.Node(r.Node.Name)
	specs, _ := object.At(node, "spec", "disks").(map[string]any)
	if _, listed := specs[d.Key]; d.Key == "" || !listed {
		_, known := object.At(node, "status", "diskStatus", d.Key).(map[string]any)
		return d.Key != "" && known, "; it still reports its state", nil
	}
	for _, change := range []any{map[string]any{"allowScheduling": false, "evictionRequested": false}, nil} {
		err := r.Changer.Patch(ctx, r.longhornRef("Node", r.Node.Name), map[string]any{"spec": map[string]any{"disks": map[string]any{d.Key: change}}})
		if there, err := exists(err); err != nil {
			return true, ": " + err.Error(), ctx.Err()
		} else if !there {
			return false, "", nil // Longhorn deletes its node after the cluster's
		}
	}
	return true, "", nil
}

// newDisks looks after the install whether Longhorn has found other disks than it
// knew: that is how a disk looks that somebody has replaced. Longhorn then takes it
// for a fault; it is told to forget the old one and to take the new one.
func (r *rebuild) newDisks() sequence.Step {
	return sequence.Of(r.step("Longhorn takes replaced disks", disksTime), func(ctx context.Context) ([]volume.Disk, error) {
		s, err := r.storage(ctx)
		if err != nil {
			return nil, err
		}
		disks := slices.DeleteFunc(s.Disks(r.Node.Name), func(d volume.Disk) bool { return !d.Changed })
		return disks, r.replaced(ctx, s, disks)
	}, r.losing("is not there any more, another one is in its place"), func(ctx context.Context, disks []volume.Disk, tell sequence.Tell) error {
		for _, d := range disks {
			if err := r.forgetDisk(ctx, d, tell); err != nil {
				return err
			}
			spec := maps.Clone(d.Spec)
			spec["allowScheduling"], spec["evictionRequested"] = true, false
			change := map[string]any{"spec": map[string]any{"disks": map[string]any{d.Key: spec}}}
			if err := r.Changer.Patch(ctx, r.longhornRef("Node", r.Node.Name), change); err != nil {
				return err
			}
		}
		return nil
	})
}

// replaced refuses to believe that a disk was replaced when it is just not mounted,
// and to forget one that may be the last that holds some data.
func (r *rebuild) replaced(ctx context.Context, s volume.Storage, disks []volume.Disk) error {
	if len(disks) == 0 {
		return nil
	}
	for _, d := range disks {
		if _, err := r.ask(ctx, "findmnt --noheadings --mountpoint "+quoted(d.Path)); err != nil {
			return no("look at journalctl -b and findmnt there", "the data disk at %s is not mounted on %s: %v", d.Path, r.Node.Name, err)
		}
	}
	nodes, err := r.Reader.List(ctx, "v1", "Node", "", "")
	if err != nil {
		return err
	}
	sight := verdict.Sight{Cluster: r.Cluster, Node: r.Node, Nodes: nodes, Storage: s}
	if err := sight.Data(); err != nil {
		return exit.With(exit.Refused, no("plug the disk in that was there before, or delete the volumes whose data may be lost",
			"%s has another disk at %s than Longhorn knew: %v", r.Node.Name, disks[0].Path, err))
	}
	return nil
}

// whole waits until every volume that is in use has all of its replicas.
func (r *rebuild) whole() sequence.Step {
	return sequence.Until(r.step("all volumes have their replicas", replicaTime), func(ctx context.Context) ([]sequence.Change, error) {
		s, err := r.storage(ctx)
		if err != nil {
			return nil, err
		}
		nodes, err := r.Reader.List(ctx, "v1", "Node", "", "")
		if err != nil {
			return nil, err
		}
		missing, resting := s.Degraded(verdict.Sight{Nodes: nodes}.Ready)
		var out []sequence.Change
		for _, m := range missing {
			out = append(out, sequence.Change{Verb: sequence.Await, What: "volume " + m.Volume, Why: m.Why})
		}
		if len(out) > 0 && resting > 0 {
			out[0].Why += fmt.Sprintf(" (%d detached volumes are completed when they are attached)", resting)
		}
		return out, nil
	}, r.Pause)
}

// quoted is a word for a POSIX shell.
func quoted(s string) string {
	out := "'"
	for _, c := range s {
		if c == '\'' {
			out += `'\''`
			continue
		}
		out += string(c)
	}
	return out + "'"
}
