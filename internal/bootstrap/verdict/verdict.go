// Package verdict decides whether a node may be rebuilt: whether its cluster would go
// on without it, and no data be lost. It gets everything as it was seen and gives all
// reasons at once, for people who want to mend them in one night.
package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/run"
)

// Sight is everything that the decision depends on, as it was seen.
type Sight struct {
	Cluster     cluster.Cluster
	Node        cluster.Node     // that is rebuilt
	Drain       bool             // its pods may be moved
	Nodes       []map[string]any // of the cluster
	Members     member.State     // of etcd
	Storage     volume.Storage
	Rebuilds    []run.Record // that have not ended, of all nodes
	Run         string       // ours
	Machine     Machine
	Unreachable error // why SSH does not reach the node; nil when it does
}

// Judge tells every reason why the node may not be rebuilt now, or nil.
func Judge(s Sight) error {
	var reasons []error
	for _, rule := range []func(Sight) error{status, busy, neighbours, quorum, Sight.Data, alive, imageable} {
		if err := rule(s); err != nil {
			reasons = append(reasons, err)
		}
	}
	switch len(reasons) {
	case 0:
		return nil
	case 1:
		return exit.With(exit.Refused, reasons[0])
	}
	var texts, hints []string
	for _, err := range reasons {
		texts = append(texts, err.Error())
		if h := diag.HintOf(err); h != "" && !slices.Contains(hints, h) {
			hints = append(hints, h)
		}
	}
	err := fmt.Errorf("%s may not be rebuilt, for %d reasons:\n  - %s", s.Node.Name, len(texts), strings.Join(texts, "\n  - "))
	return exit.With(exit.Refused, diag.WithHint(err, strings.Join(hints, "; ")))
}

func no(hint, format string, args ...any) error {
	return diag.WithHint(fmt.Errorf(format, args...), hint)
}

// status: a profile that is not active touches nothing.
func status(s Sight) error {
	if s.Cluster.Status == cluster.StatusActive {
		return nil
	}
	return no("set status: active in the profile, in git, when its machines may be written", "the profile of %s is %s: no node is rebuilt", s.Cluster.Environment, s.Cluster.Status)
}

// busy: one node at a time.
func busy(s Sight) error {
	for _, r := range s.Rebuilds {
		if r.Subject != s.Node.Name && r.ID != s.Run {
			return no(fmt.Sprintf("finish that first: bootstrap rebuild %s; or give it up: bootstrap rebuild %[1]s --abandon", r.Subject),
				"another node is being rebuilt: %s, since %s, by %s", r.Subject, r.Started.UTC().Format(time.RFC3339), r.Owner)
		}
	}
	return nil
}

// neighbours: all other nodes of the profile are there and Ready.
func neighbours(s Sight) error {
	var down []string
	for _, n := range s.Cluster.Nodes {
		if n.Name == s.Node.Name {
			continue
		}
		if why := s.down(n.Name); why != "" {
			down = append(down, n.Name+" "+why)
		}
	}
	if len(down) == 0 {
		return nil
	}
	return no("mend it first; a cluster that lacks two nodes has no spare one", "another node is down: %s", strings.Join(down, "; "))
}

// down says why a node cannot be counted on, "" when it can.
func (s Sight) down(name string) string {
	n := s.node(name)
	if n == nil {
		return "is not in the cluster"
	}
	if c := object.ConditionOf(n, "Ready"); !c.True() {
		return "is not Ready: " + c.String()
	}
	return ""
}

func (s Sight) node(name string) map[string]any {
	at := slices.IndexFunc(s.Nodes, func(n map[string]any) bool { return object.Of(n).Name == name })
	if at < 0 {
		return nil
	}
	return s.Nodes[at]
}

// Ready reports whether a node can be counted on.
func (s Sight) Ready(name string) bool { return s.down(name) == "" }

// quorum: etcd goes on without the node's member.
func quorum(s Sight) error {
	if s.Node.Role != cluster.RoleServer {
		return nil
	}
	_, err := member.Remove(s.Members, Servers(s.Cluster, s.Nodes), s.Node.Name)
	return err
}

// Data refuses when a volume has its last whole copy on the node.
func (s Sight) Data() error {
	risks := s.Storage.AtRisk(s.Node.Name, s.Ready)
	if len(risks) == 0 {
		return nil
	}
	var lines []string
	for _, r := range risks {
		lines = append(lines, "\n    "+r.String())
	}
	volumes := "1 volume"
	if len(risks) > 1 {
		volumes = fmt.Sprintf("%d volumes", len(risks))
	}
	return no("wait until Longhorn has built another replica, or raise numberOfReplicas; move or delete what lies on the node alone",
		"data would be lost with %s, of %s:%s", s.Node.Name, volumes, strings.Join(lines, ""))
}

// alive: pods are not killed, and a node that cannot be stopped is not left running
// outside of its cluster.
func alive(s Sight) error {
	n := s.node(s.Node.Name)
	if n == nil || !object.ConditionOf(n, "Ready").True() {
		return nil
	}
	if s.Unreachable != nil {
		return no("switch it off; a minute later it counts as lost", "%s is alive, but SSH does not reach it, so that it could not be stopped: %v", s.Node.Name, s.Unreachable)
	}
	if object.At(n, "spec", "unschedulable") != true && !s.Drain {
		return no("move its pods first with --drain, or cordon it yourself", "%s is alive and takes pods", s.Node.Name)
	}
	return nil
}

// imageable: pxed would image the machine. It is asked first, because afterwards the
// node is gone.
func imageable(s Sight) error {
	m := s.Machine
	switch {
	case m.Refused != "":
		return no(m.Hint, "pxed would not image the machine of %s: %s", s.Node.Name, m.Refused)
	case m.State == life.StateImaging && !Ours(m.Arming, s.Run):
		return no("wait for it, or take it back: pxed disarm "+s.Node.Name, "the machine of %s is being imaged right now, for somebody else", s.Node.Name)
	}
	return nil
}

// Servers are the nodes that run etcd, where the profile, or the cluster, has them.
func Servers(c cluster.Cluster, nodes []map[string]any) []member.Server {
	var out []member.Server
	for _, n := range c.Nodes {
		if n.Role != cluster.RoleServer {
			continue
		}
		v := member.Server{Name: n.Name}
		if a := n.Address(); a.IsValid() {
			v.Addresses = append(v.Addresses, a.String())
		} else {
			v.Addresses = internal(nodes, n.Name)
		}
		out = append(out, v)
	}
	return out
}

// internal are the addresses of a node as the cluster knows them.
func internal(nodes []map[string]any, name string) []string {
	var out []string
	for _, n := range nodes {
		for _, a := range object.Maps(n, "status", "addresses") {
			if object.Of(n).Name == name && object.Text(a, "type") == "InternalIP" {
				out = append(out, object.Text(a, "address"))
			}
		}
	}
	return out
}
