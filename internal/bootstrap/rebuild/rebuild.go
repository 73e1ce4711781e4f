// Package rebuild takes a node out of a living cluster and brings its machine back
// as the same node, without losing data: any node, the first one included.
//
// The order of the steps, and why:
//
//   - first everything that could forbid it is looked at, and again before each step
//     that destroys something: between two steps minutes pass;
//   - etcd is saved before anything is taken from it;
//   - pods leave before the node does;
//   - the dead member leaves etcd before its successor comes: with it in the list a
//     joining node makes four, of which three have to agree;
//   - then what the cluster remembers of the node: the Node first, because while it is
//     there k3s keeps the node's password, and with that password the reinstalled node,
//     which has another, is refused;
//   - the machine is armed last, when nothing can forbid it any more;
//   - after the install the node joins through a living one, and each part is awaited
//     in the order in which it can come: a vote, the network, the storage, its copies.
//
// Whatever was done is seen on the cluster, in pxed, or in the run's record, so that
// the same command after a kill goes on where the last one was.
package rebuild

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/run"
	"github.com/slipway/slipway/internal/sequence"
)

// Layer is what the steps belong to, and Story what their runs are called.
const (
	Layer = "rebuild"
	Story = "rebuild"
)

// Reader reads objects of the cluster.
type Reader interface {
	Get(ctx context.Context, r object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Changer changes objects of the cluster. Deleting what is not there is no error.
type Changer interface {
	Delete(ctx context.Context, r object.Ref) error
	Patch(ctx context.Context, r object.Ref, change map[string]any) error
	Evict(ctx context.Context, r object.Ref) (blocked string, err error)
}

// Etcd is the members of etcd. Removing one that is not there is no error.
type Etcd interface {
	State(ctx context.Context) (member.State, error)
	Remove(ctx context.Context, id member.ID) error
}

// Snapshots keeps snapshots of etcd, by the run that they were taken for.
type Snapshots interface {
	Has(ctx context.Context, run string) (bool, error)
	Ensure(ctx context.Context, run, why string, tell func(words string)) error
}

// Machines images machines. The same arming twice is one.
type Machines interface {
	Machine(ctx context.Context, node string) (verdict.Machine, error)
	Arm(ctx context.Context, node string, o verdict.Order) error
	Wake(ctx context.Context, node string) error
}

// Node is the node as SSH reaches it; commands run as root.
type Node interface {
	Run(ctx context.Context, command string, stdin []byte) ([]byte, error)
}

// Journal is the run's record in the ledger.
type Journal interface {
	Record(ctx context.Context) (run.Record, error)
	Note(ctx context.Context, step, state, note string) error
}

// Runs finds the runs of others.
type Runs interface {
	Runs(ctx context.Context, f run.Filter) ([]run.Record, error)
}

// Options are what a rebuild works with.
type Options struct {
	Cluster cluster.Cluster // with an address for every node
	Node    cluster.Node    // that is rebuilt
	Drain   bool            // it may be alive: its pods are moved first
	Order   verdict.Order   // how the machine is imaged; ID is given here
	Run     string          // ID of the run

	Reader    Reader
	Changer   Changer
	Etcd      Etcd
	Snapshots Snapshots
	Machines  Machines
	// Reach gives the node. After the install it is another one, with other host
	// keys, so it is asked for anew each time.
	Reach   func(ctx context.Context) (Node, error)
	Journal Journal
	Runs    Runs
	Pause   func(context.Context) error // between two looks

	// Steps of other layers that bring an installed node back: its disks are mounted
	// and k3s runs and has joined through a living node; the network is healthy on it;
	// Longhorn's disks on it are ready.
	Join, Network, Storage []sequence.Step
}

// rebuild is one rebuild.
type rebuild struct {
	Options
	installed bool // once seen, it stays so
}

// Bounds of the steps.
const (
	snapshotTime  = 10 * time.Minute
	drainTime     = 20 * time.Minute
	etcdTime      = 3 * time.Minute
	objectsTime   = 5 * time.Minute
	disksTime     = 10 * time.Minute
	armTime       = time.Minute
	installTime   = 2 * time.Hour // somebody may have to walk to the machine
	startTime     = 20 * time.Minute
	voteTime      = 15 * time.Minute
	replicaTime   = 12 * time.Hour // a terabyte over one gigabit takes three
	questionLimit = 20 * time.Second
)

// Steps are all steps of a rebuild.
func Steps(o Options) []sequence.Step {
	r := &rebuild{Options: o}
	steps := []sequence.Step{
		r.safe(), r.remembered(), r.saved(), r.drained(), r.outOfEtcd(), r.forgotten(), r.disksForgotten(), r.armed(), r.imaged(), r.started(),
	}
	steps = append(steps, r.later(o.Join)...)
	steps = append(steps, r.later(r.votes())...)
	steps = append(steps, r.later(o.Network)...)
	steps = append(steps, r.later([]sequence.Step{r.newDisks()})...)
	steps = append(steps, r.later(o.Storage)...)
	return append(steps, r.later([]sequence.Step{r.whole(), r.uncordoned(), r.unchanged()})...)
}

func (r *rebuild) server() bool { return r.Node.Role == cluster.RoleServer }

// step is a step about the node.
func (r *rebuild) step(name string, deadline time.Duration) sequence.Step {
	return sequence.Step{Layer: Layer, Name: name, Node: r.Node.Name, Deadline: deadline}
}

// later lets steps look only when the machine was installed anew: what they would
// see before is the node as it was.
func (r *rebuild) later(steps []sequence.Step) []sequence.Step {
	var out []sequence.Step
	for _, s := range steps {
		look := s.Observe
		s.Observe = func(ctx context.Context) ([]sequence.Change, error) {
			if fresh, err := r.fresh(ctx); err != nil || !fresh {
				return nil, firstError(err, sequence.ErrUnseen)
			}
			return look(ctx)
		}
		if len(s.Blind) == 0 {
			s.Blind = []sequence.Change{{Verb: sequence.Await, What: s.Name, Why: "comes after the install of " + r.Node.Name}}
		}
		out = append(out, s)
	}
	return out
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// unless does nothing when the machine was installed anew already: what the step is
// about was done before that.
func unless[S any](r *rebuild, observe func(context.Context) (S, error)) func(context.Context) (S, error) {
	return func(ctx context.Context) (none S, err error) {
		if fresh, err := r.fresh(ctx); err != nil || fresh {
			return none, err
		}
		return observe(ctx)
	}
}

// no is a refusal with what to do about it.
func no(hint, format string, args ...any) error {
	return diag.WithHint(fmt.Errorf(format, args...), hint)
}
