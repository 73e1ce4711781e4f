// Package volume decides from Longhorn's objects what a node holds: which volumes
// would lose their last good copy with it, which disks it has had, and whether all
// copies are there again. Rules and fields are those of Longhorn 1.9
// (longhorn-manager, controller/volume_controller.go and datastore/longhorn.go).
package volume

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
)

// API is the version of Longhorn's objects.
const API = "longhorn.io/v1beta2"

// Namespace is where they are.
const Namespace = "longhorn-system"

// Storage is Longhorn's view of the cluster, and what lies on nodes beside it. All
// lists are empty where Longhorn is not installed.
type Storage struct {
	Volumes  []map[string]any // volumes.longhorn.io
	Replicas []map[string]any
	Engines  []map[string]any
	Nodes    []map[string]any // nodes.longhorn.io
	Claimed  []map[string]any // PersistentVolumes of every kind
}

// Risk is a volume that a rebuild would take data from.
type Risk struct {
	Volume string
	Claim  string // namespace/name of its PersistentVolumeClaim, "" when it has none
	Why    string
}

// String names volume, claim and reason.
func (r Risk) String() string {
	claim := "no claim"
	if r.Claim != "" {
		claim = "claim " + r.Claim
	}
	return fmt.Sprintf("%s (%s): %s", r.Volume, claim, r.Why)
}

// AtRisk are the volumes, attached or not, that would lose data when the node went
// with its disks. ready says which nodes can be counted on: a copy on a node that is
// down is no copy now.
func (s Storage) AtRisk(node string, ready func(node string) bool) []Risk {
	var out []Risk
	for _, v := range s.Volumes {
		if why := s.risk(v, node, ready); why != "" {
			out = append(out, Risk{object.Of(v).Name, claim(v), why})
		}
	}
	return append(out, s.local(node)...)
}

func claim(v map[string]any) string {
	namespace, name := object.Text(v, "status", "kubernetesStatus", "namespace"), object.Text(v, "status", "kubernetesStatus", "pvcName")
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}

func (s Storage) risk(v map[string]any, node string, ready func(string) bool) string {
	copies := s.copies(object.Of(v).Name)
	here := slices.DeleteFunc(slices.Clone(copies), func(r map[string]any) bool { return nodeOf(r) != node })
	switch {
	case len(here) == 0, empty(v, copies):
		return ""
	case object.Int(v, "spec", "numberOfReplicas") == 1:
		return "it has one replica, on " + node
	}
	good, others := 0, []string(nil)
	for _, r := range copies {
		if nodeOf(r) == node {
			continue
		}
		if why := s.unusable(r, ready); why == "" {
			good++
		} else {
			others = append(others, why)
		}
	}
	switch {
	case good > 0:
		return ""
	case slices.ContainsFunc(here, func(r map[string]any) bool { return s.unusable(r, always) == "" }):
		return "its last healthy replica is on " + node + detail(others)
	}
	return fmt.Sprintf("it has no healthy replica anywhere, and a damaged one that may be all that is left is on %s%s", node, detail(others))
}

func always(string) bool { return true }

func detail(others []string) string {
	if len(others) == 0 {
		return ""
	}
	return "; " + strings.Join(others, ", ")
}

// copies are the replicas of a volume that are not being deleted.
func (s Storage) copies(volume string) []map[string]any {
	var out []map[string]any
	for _, r := range s.Replicas {
		if object.Text(r, "spec", "volumeName") == volume && object.Text(r, "metadata", "deletionTimestamp") == "" {
			out = append(out, r)
		}
	}
	return out
}

func nodeOf(r map[string]any) string { return object.Text(r, "spec", "nodeID") }

// empty reports whether nothing was ever written to a volume: it was never attached,
// so that no replica has ever been in use.
func empty(v map[string]any, copies []map[string]any) bool {
	used := slices.ContainsFunc(copies, func(r map[string]any) bool {
		return object.Text(r, "spec", "healthyAt") != "" || object.Text(r, "spec", "lastHealthyAt") != "" || object.Text(r, "spec", "failedAt") != ""
	})
	return !used && object.Text(v, "status", "state") == "detached"
}

// unusable says why a replica cannot be counted as a whole copy, "" when it can.
// Longhorn's own rule is that healthyAt is set and failedAt is not; a replica that
// failed and was not healthy since is only trusted by accident, and the engine of an
// attached volume knows first which of its replicas is whole (RW).
func (s Storage) unusable(r map[string]any, ready func(string) bool) string {
	spec := func(field string) string { return object.Text(r, "spec", field) }
	where := spec("nodeID")
	switch {
	case where == "":
		return "one has no place yet"
	case spec("failedAt") != "":
		return "the one on " + where + " has failed"
	case spec("healthyAt") == "":
		return "the one on " + where + " is being built"
	case object.At(r, "spec", "active") != true:
		return "the one on " + where + " is not in use"
	case spec("lastFailedAt") != "" && !later(spec("lastHealthyAt"), spec("lastFailedAt")):
		return "the one on " + where + " has not been whole since it failed"
	case !ready(where):
		return where + " is down"
	}
	if mode := s.mode(r); mode != "" && mode != "RW" {
		return fmt.Sprintf("the one on %s is in mode %s", where, mode)
	}
	return ""
}

// mode is what the running engine says of the replica, "" when none runs.
func (s Storage) mode(r map[string]any) string {
	for _, e := range s.Engines {
		if object.Text(e, "spec", "volumeName") == object.Text(r, "spec", "volumeName") && object.Text(e, "status", "currentState") == "running" {
			if mode := object.Text(e, "status", "replicaModeMap", object.Of(r).Name); mode != "" {
				return mode
			}
		}
	}
	return ""
}

func later(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	return err == nil && err2 == nil && x.After(y)
}

// local are the volumes that lie on the node's own disks, outside of Longhorn, and
// can be nowhere else.
func (s Storage) local(node string) []Risk {
	var out []Risk
	for _, pv := range s.Claimed {
		if (object.At(pv, "spec", "local") == nil && object.At(pv, "spec", "hostPath") == nil) || !pinned(pv, node) {
			continue
		}
		name := object.Text(pv, "spec", "claimRef", "name")
		if name != "" {
			name = object.Text(pv, "spec", "claimRef", "namespace") + "/" + name
		}
		out = append(out, Risk{object.Of(pv).Name, name, "it lies on a disk of " + node + " itself"})
	}
	return out
}

// pinned reports whether a volume's affinity lets it be on this node alone.
func pinned(pv map[string]any, node string) bool {
	for _, term := range object.Maps(pv, "spec", "nodeAffinity", "required", "nodeSelectorTerms") {
		for _, e := range object.Maps(term, "matchExpressions") {
			values, _ := object.At(e, "values").([]any)
			if object.Text(e, "key") == "kubernetes.io/hostname" && object.Text(e, "operator") == "In" && len(values) == 1 && values[0] == node {
				return true
			}
		}
	}
	return false
}
