// Package preflight finds every reason not to begin, before anything is changed: of
// the profile, of each node, and of the nodes together. It collects all of them, so
// that an evening is not spent on one after the other.
package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/start"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/sequence"
)

// Input is what is judged.
type Input struct {
	Cluster  cluster.Cluster
	Seen     []facts.Seen      // of every node, in the order of the profile
	Recorded *identity.Cluster // what the ledger knows; nil when it knows no cluster
	// Etcd is the state of the cluster's etcd, when there is a cluster; EtcdErr says
	// why it could not be read.
	Etcd    *member.State
	EtcdErr error
	// WithoutTimeServer lets clocks be that nobody keeps: on a network that has no
	// time server, by the operator's explicit word.
	WithoutTimeServer bool
}

// Survey asks nodes; Ask returns what each said, in the order of the names.
type Survey interface {
	Ask(ctx context.Context, names ...string) []facts.Seen
}

// Options are what the step needs.
type Options struct {
	Cluster           cluster.Cluster
	Survey            Survey
	Recorded          func(context.Context) (*identity.Cluster, error) // nil when the ledger knows no cluster
	Etcd              func(ctx context.Context, via string) (member.State, error)
	WithoutTimeServer bool
}

// Step checks everything. It only looks, so it is done when there is nothing to say,
// and an error that lists all there is otherwise.
func Step(o Options) sequence.Step {
	return sequence.Step{
		Layer: "preflight", Name: "nothing speaks against it",
		Observe: func(ctx context.Context) ([]sequence.Change, error) { return nil, observe(ctx, o) },
	}
}

func observe(ctx context.Context, o Options) error {
	var l list
	// A profile that nothing may be done with is no reason to ask anybody.
	if l.profile(o.Cluster); len(l.findings) > 0 {
		return l.err()
	}
	in := Input{Cluster: o.Cluster, WithoutTimeServer: o.WithoutTimeServer}
	var err error
	if in.Recorded, err = o.Recorded(ctx); err != nil {
		return err
	}
	var names []string
	for _, n := range o.Cluster.Nodes {
		names = append(names, n.Name)
	}
	in.Seen = o.Survey.Ask(ctx, names...)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if via := serving(in.Seen); via != "" {
		var state member.State
		if state, in.EtcdErr = o.Etcd(ctx, via); in.EtcdErr == nil {
			in.Etcd = &state
		}
	}
	return Check(in)
}

// serving is a node whose etcd can be asked, or "".
func serving(seen []facts.Seen) string {
	for _, s := range seen {
		if s.Err == nil && s.Facts.K3s.Etcd && s.Facts.K3s.State == "active" {
			return s.Node
		}
	}
	return ""
}

// Check judges. The error is an *Error with everything that was found, or nil.
func Check(in Input) error {
	var l list
	l.profile(in.Cluster)
	for i, n := range in.Cluster.Nodes {
		if i >= len(in.Seen) || in.Seen[i].Node != n.Name {
			l.error(n.Name, errors.New("it was not asked"))
			continue
		}
		s := in.Seen[i]
		if s.Err != nil {
			l.error(n.Name, s.Err)
			continue
		}
		l.node(in, n, s)
	}
	l.unique(reached(in.Seen))
	l.clocks(reached(in.Seen))
	l.cluster(in)
	l.dropIns(in)
	return l.err()
}

func reached(seen []facts.Seen) []facts.Seen {
	return slices.DeleteFunc(slices.Clone(seen), func(s facts.Seen) bool { return s.Err != nil })
}

// node judges one node by itself.
func (l *list) node(in Input, n cluster.Node, s facts.Seen) {
	f := s.Facts
	l.who(in.Cluster, n, f)
	l.clock(in, s)
	l.addresses(in, n, f)
	l.routes(in.Cluster, n, f)
	for _, m := range f.Missing {
		l.add(n.Name, "%s", m.What)("%s", m.Hint)
	}
	if want := facts.Want(in.Cluster, n); len(want.Disks) > 0 {
		if _, err := diskselect.Running(f.Disks, want.Orders()); err != nil {
			l.add(n.Name, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))("correct dataDisks in the profile, or the disk: what is on it is never written over")
		}
	}
	l.k3s(in.Cluster, n, f.K3s)
}

// who compares the node with the one that the profile means.
func (l *list) who(c cluster.Cluster, n cluster.Node, f facts.Facts) {
	switch {
	case f.Node != n.Name:
		l.add(n.Name, "who answers at its address calls itself %s", f.Node)("correct the addresses in the profile, or write the right seed to the machine")
	case f.Environment != "" && f.Environment != c.Environment, f.Cluster != "" && f.Cluster != c.Name:
		l.add(n.Name, "its seed is of cluster %s in environment %s, the profile is of %s in %s", f.Cluster, f.Environment, c.Name, c.Environment)("use the profile of that environment, or install the node with a seed of this one")
	}
	if f.MachineID == "" {
		l.add(n.Name, "it has no machine id")("restart it: nodeinit makes one")
	}
	if f.Initiator == "" && c.Longhorn.Enabled {
		l.add(n.Name, "it has no iSCSI initiator name")("restart it: nodeinit makes one")
	}
}

func (l *list) k3s(c cluster.Cluster, n cluster.Node, k facts.K3s) {
	switch {
	case k.Version == "":
		l.add(n.Name, "its image has no k3s")("build the image with k3s in it and install the node with that")
	case upstream(k.Version) != upstream(c.K3s.Version) && !k.Knows() && !k.Joined:
		l.add(n.Name, "its image has k3s %s, the profile wants %s", k.Version, c.K3s.Version)("build the image anew and install the node with it, or set k3s.version to what it has")
	}
	agent := k.Unit == "k3s-agent.service"
	switch {
	case n.Role == cluster.RoleServer && agent:
		l.add(n.Name, "it has been an agent, and the profile makes it a server")("install it anew (bootstrap rebuild %s): a role does not change in place", n.Name)
	case n.Role == cluster.RoleAgent && k.Knows():
		l.add(n.Name, "it holds data of a server, and the profile makes it an agent")("remove it from the cluster and install it anew: a role does not change in place")
	case k.Knows() && !k.Config:
		l.add(n.Name, "it holds data of a cluster that was not made by Slipway: there is no configuration of k3s")("save what it holds, then install the node anew")
	}
}

// upstream is the version of Kubernetes in a version of k3s: what counts for nodes that
// shall work together. Which k3s an image holds, its lock says.
func upstream(version string) string {
	v, _, _ := strings.Cut(version, "+")
	return v
}

// cluster judges the nodes as members of one cluster.
func (l *list) cluster(in Input) {
	var servers []facts.Seen
	known := in.Recorded != nil
	for _, s := range in.Seen {
		known = known || s.Err == nil && s.Facts.K3s.Knows()
	}
	for i, n := range in.Cluster.Nodes {
		if i >= len(in.Seen) {
			return
		}
		s := in.Seen[i]
		if n.Role == cluster.RoleServer {
			servers = append(servers, s)
		}
		if s.Err == nil && s.Facts.K3s.Joined && !s.Facts.K3s.Knows() && !known {
			l.add(n.Name, "it has been a node of a cluster that nobody here knows")("install it anew, or use the ledger of that cluster")
		}
	}
	// That a server is silent was said; it would be the only reason once more.
	if len(reached(servers)) == len(servers) {
		_, err := start.Decide(in.Recorded, servers)
		l.error("", err)
	}
	if in.EtcdErr != nil {
		l.error("", in.EtcdErr)
	}
	if in.Etcd != nil {
		l.quorum(*in.Etcd)
	}
}

// quorum wants a majority of healthy voters: without it nothing can be written, and
// nobody can join.
func (l *list) quorum(s member.State) {
	voters, healthy := s.Voters(), 0
	var sick []string
	for _, m := range voters {
		if s.Health[m.ID].Healthy {
			healthy++
			continue
		}
		sick = append(sick, m.String()+": "+s.Health[m.ID].Why)
	}
	if need := len(voters)/2 + 1; healthy < need {
		l.add("", "etcd has no quorum: of its %d voters %d must be healthy, and %d are; %s", len(voters), need, healthy, strings.Join(sick, "; "))("start the others first, and look at journalctl -u k3s there")
	}
}
