package volume

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/payload/object"
)

// Disk is a disk that Longhorn knows on a node, and what it believes to be there.
type Disk struct {
	Key      string         // in spec.disks; empty when Longhorn has forgotten the node and only replicas remember the disk
	UUID     string         // of its longhorn-disk.cfg
	Path     string         // where it is mounted
	Spec     map[string]any // as it is in spec.disks
	Replicas []string       // names of those on it
	Changed  bool           // Longhorn itself has found another disk there
}

// Node is Longhorn's object of a node, nil when there is none.
func (s Storage) Node(name string) map[string]any {
	at := slices.IndexFunc(s.Nodes, func(n map[string]any) bool { return object.Of(n).Name == name })
	if at < 0 {
		return nil
	}
	return s.Nodes[at]
}

// Disks are the disks of a node: those that its object lists, then those that only
// replicas speak of.
func (s Storage) Disks(name string) []Disk {
	node := s.Node(name)
	specs, _ := object.At(node, "spec", "disks").(map[string]any)
	var out []Disk
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		spec, _ := specs[key].(map[string]any)
		out = append(out, Disk{
			Key: key, Spec: spec, Path: object.Text(spec, "path"), UUID: object.Text(node, "status", "diskStatus", key, "diskUUID"),
			Changed: strings.Contains(object.ConditionOf(node, "Ready", "status", "diskStatus", key, "conditions").Message, changed),
		})
	}
	for _, r := range s.Replicas {
		if nodeOf(r) == name {
			out = place(out, r)
		}
	}
	return out
}

// changed is how Longhorn says that the disk at a path is not the one it knew. It has
// the same reason for a disk that is not mounted, which is no reason to forget it.
const changed = "record diskUUID doesn't match"

func place(disks []Disk, r map[string]any) []Disk {
	uuid, name := object.Text(r, "spec", "diskID"), object.Of(r).Name
	if uuid == "" {
		return disks
	}
	at := slices.IndexFunc(disks, func(d Disk) bool { return d.UUID == uuid })
	if at < 0 {
		disks, at = append(disks, Disk{UUID: uuid, Path: object.Text(r, "spec", "diskPath")}), len(disks)
	}
	disks[at].Replicas = append(disks[at].Replicas, name)
	return disks
}

// Below reports whether the disk is at one of the paths.
func (d Disk) Below(paths []string) bool {
	return d.Path != "" && slices.ContainsFunc(paths, func(p string) bool { return path.Clean(p) == path.Clean(d.Path) })
}
