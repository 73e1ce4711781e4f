// Package k3s brings k3s onto the nodes: the first server of a cluster that nobody
// knows, then the others one by one, each only when the one before is a voter of etcd,
// then the agents. No server is special afterwards. A node that is Ready is not waited
// for: there is no network yet.
package k3s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/start"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// layer is what the steps belong to.
const layer = "k3s"

// Deadlines of the steps. Starting an API server takes a minute on a mini-PC, and
// several on an emulated one.
const (
	serverLimit = 20 * time.Minute
	agentLimit  = 10 * time.Minute
	configLimit = time.Minute
)

// Node is a node to work on, as root.
type Node interface {
	Run(ctx context.Context, command string, stdin []byte) ([]byte, error)
	Put(ctx context.Context, path string, perm fs.FileMode, data []byte) error
	Get(ctx context.Context, path string) ([]byte, error)
}

// Survey asks nodes what they are, and remembers it until told to forget.
type Survey interface {
	Ask(ctx context.Context, names ...string) []facts.Seen
	Forget(names ...string)
}

// Options are what the steps need.
type Options struct {
	Cluster  cluster.Cluster
	Node     func(name string) Node
	Survey   Survey
	Recorded func(context.Context) (*identity.Cluster, error) // what the ledger knows; nil when it knows no cluster
	// Etcd asks the members of etcd through a server.
	Etcd func(ctx context.Context, via string) (member.State, error)
	// Token is what nodes join with; it is asked for when a node needs it.
	Token func() (string, error)
	Pause func(context.Context) error // between two looks at something that is awaited
	// Born, if there is one, is told of a new cluster as soon as its first server votes.
	Born func(ctx context.Context, via string) error

	last *view // what was seen last, until something is done; shared by the steps
}

// Steps are the steps, in order:
//
//   - everything is asked and compared, and it is decided who starts or who joins;
//   - the server that starts a cluster, if one does, comes first, because the others
//     join it;
//   - then the other servers in the order of the profile, one by one: etcd admits one
//     new member at a time;
//   - then the right to start a cluster is taken out of the configuration that had it;
//   - then the agents, which need a server.
func Steps(o Options) []sequence.Step {
	o.last = &view{}
	steps := []sequence.Step{decided(o)}
	for _, n := range o.Cluster.Servers() {
		steps = append(steps, votes(o, n.Name))
	}
	for _, n := range o.Cluster.Servers() {
		steps = append(steps, disarmed(o, n.Name))
	}
	for _, n := range o.Cluster.Nodes {
		if n.Role == cluster.RoleAgent {
			steps = append(steps, joined(o, n.Name))
		}
	}
	return steps
}

// view is what was seen of all nodes, and what follows from it.
type view struct {
	cluster  cluster.Cluster // every node has an address
	seen     map[string]facts.Seen
	decision start.Decision
	etcd     *member.State // of the cluster that lives; nil when there is none, or it does not answer yet
	etcdErr  error
}

// look asks every node, whichever the step is about: one that is silent may hold a
// cluster. As long as no step does anything, they are asked once.
func (o Options) look(ctx context.Context) (view, error) {
	if o.last != nil && o.last.seen != nil {
		return *o.last, nil
	}
	v, err := o.see(ctx)
	if err == nil && o.last != nil {
		*o.last = v
	}
	return v, err
}

// changed is called by a step that has done something on a node.
func (o Options) changed(name string) {
	o.Survey.Forget(name)
	if o.last != nil {
		*o.last = view{}
	}
}

func (o Options) see(ctx context.Context) (view, error) {
	var names []string
	for _, n := range o.Cluster.Nodes {
		names = append(names, n.Name)
	}
	seen := o.Survey.Ask(ctx, names...)
	if err := context.Cause(ctx); err != nil {
		return view{}, err
	}
	v := view{seen: map[string]facts.Seen{}}
	var servers []facts.Seen
	for i, s := range seen {
		v.seen[s.Node] = s
		if o.Cluster.Nodes[i].Role == cluster.RoleServer {
			servers = append(servers, s)
		}
	}
	recorded, err := o.Recorded(ctx)
	if err != nil {
		return v, err
	}
	if v.decision, err = start.Decide(recorded, servers); err != nil {
		return v, err
	}
	if v.cluster, err = k3sconf.Addressed(o.Cluster, facts.Found(o.Cluster, seen)); err != nil {
		return v, err
	}
	if len(v.decision.Via) > 0 {
		v.etcd, v.etcdErr = o.members(ctx, v.decision.Via)
	}
	return v, nil
}

// members asks etcd through one server after the other.
func (o Options) members(ctx context.Context, via []string) (*member.State, error) {
	var errs []error
	for _, name := range via {
		state, err := o.Etcd(ctx, name)
		if err == nil {
			return &state, nil
		}
		errs = append(errs, fmt.Errorf("through %s: %w", name, err))
	}
	return nil, errors.Join(errs...)
}

func (v view) node(name string) cluster.Node {
	for _, n := range v.cluster.Nodes {
		if n.Name == name {
			return n
		}
	}
	return cluster.Node{}
}

// servers are the servers as etcd's members are told apart.
func (v view) servers() []member.Server {
	var out []member.Server
	for _, n := range v.cluster.Servers() {
		out = append(out, member.Server{Name: n.Name, Addresses: []string{n.Address().String()}})
	}
	return out
}

func (v view) server(name string) member.Server {
	all := v.servers()
	return all[slices.IndexFunc(all, func(s member.Server) bool { return s.Name == name })]
}

// living reports whether k3s runs on a server that can be joined: then etcd must
// answer. As long as none runs, it is on its way.
func (v view) living() bool {
	return slices.ContainsFunc(v.decision.Via, func(n string) bool { return v.seen[n].Facts.K3s.State == "active" })
}

// join is how a node comes into the cluster.
func (v view) join(name string) k3sconf.Join {
	if v.decision.Init == name {
		return k3sconf.Join{Init: true}
	}
	through := v.decision.Through(name)
	if through == "" {
		through = name // the only server: it must not start a cluster once more
	}
	return k3sconf.Join{Server: k3sconf.URL(v.node(through).Address())}
}

func create(what, format string, args ...any) sequence.Change {
	return sequence.Change{Verb: sequence.Create, What: what, Why: fmt.Sprintf(format, args...)}
}

func refuse(hint, format string, args ...any) error {
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf(format, args...), hint))
}

// decided looks at everything and changes nothing. What it finds ends the run before
// anything starts.
func decided(o Options) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "it is decided who starts and who joins",
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			v, err := o.look(ctx)
			if err != nil {
				return nil, err
			}
			return nil, o.agree(ctx, v)
		},
	}
}

// agree compares what the servers will have, with what operators added, and what the
// members of a living cluster have: the flags of a cluster cannot change while it lives.
func (o Options) agree(ctx context.Context, v view) error {
	wanted := map[string][]byte{}
	for _, n := range v.cluster.Servers() {
		s := v.seen[n.Name]
		if s.Err != nil {
			continue
		}
		merged, err := effective(v.cluster, n, v.join(n.Name), s.DropIns)
		if err != nil {
			return err
		}
		wanted[n.Name] = merged
		if !s.Facts.K3s.Knows() {
			continue
		}
		now, err := o.Node(n.Name).Get(ctx, k3sconf.ConfigPath)
		if err != nil {
			return err
		}
		now, _ = k3sconf.Merge(now, s.DropIns)
		if err := same(n.Name, now, merged); err != nil {
			return err
		}
	}
	if err := k3sconf.Agree(wanted); err != nil {
		return exit.With(exit.Refused, err)
	}
	return nil
}

// effective is what k3s would make of the configuration and the drop-ins; a drop-in
// that undoes ours is refused.
func effective(c cluster.Cluster, n cluster.Node, j k3sconf.Join, dropIns map[string][]byte) ([]byte, error) {
	base, err := k3sconf.Render(c, n, j)
	if err != nil {
		return nil, err
	}
	merged, findings := k3sconf.Merge(base, dropIns)
	if len(findings) == 0 {
		return merged, nil
	}
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprintf("%s: %s (%s)", f.Pos, f.Message, f.Path))
	}
	return nil, refuse(findings[0].Hint, "drop-ins of %s: %s", n.Name, strings.Join(all, "; "))
}

// same refuses cluster-wide flags that a living member does not have.
func same(node string, now, wanted []byte) error {
	if bytes.Equal(k3sconf.ClusterFlags(now), k3sconf.ClusterFlags(wanted)) {
		return nil
	}
	differ := errors.New("its configuration cannot be compared")
	if err := k3sconf.Agree(map[string][]byte{node: now, "paper": wanted}); err != nil {
		differ = err
	}
	return refuse("take the change back in the profile: these flags are for the life of a cluster",
		"%s runs with other cluster-wide flags than the profile (on paper) wants: %s", node, strings.TrimPrefix(differ.Error(), "the servers' k3s configurations differ: "))
}
