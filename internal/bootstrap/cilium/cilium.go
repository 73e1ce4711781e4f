// Package cilium makes the network: the definitions of the Gateway API, the Helm
// release, and then the waits for what needs pods. The order is fixed:
//
//   - the definitions first, because the operator looks for them once, when it starts,
//     and goes without them if they are not there;
//   - then the release, without waiting for pods or nodes: nothing is Ready before
//     there is a network;
//   - then an operator that is older than the definitions is restarted;
//   - then the waits: the rollout, what every agent says of itself, the GatewayClass.
package cilium

import (
	"context"
	"net"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

const (
	layer     = "cilium"
	namespace = "kube-system"
	// rollout bounds the waits for pods. The first start of an agent compiles its
	// datapath, which takes minutes on a slow machine.
	rollout = 15 * time.Minute
)

// Wanted is something that the cluster shall have: what is missing, and how to make it.
type Wanted interface {
	Changes(context.Context) ([]sequence.Change, error)
	Apply(context.Context, sequence.Tell) error
}

// Reader reads objects of the cluster.
type Reader interface {
	Get(context.Context, object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Restarter finds out what is older than what, and deletes pods.
type Restarter interface {
	Metadata(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
	Delete(context.Context, object.Ref) error
}

// Agent reaches the API of the agent on a node, which listens on SocketPath there.
type Agent func(ctx context.Context, node string) (net.Conn, error)

// SocketPath is where the agent's API listens, on its node.
const SocketPath = "/var/run/cilium/cilium.sock"

// Pause lets time pass between two looks.
type Pause func(context.Context) error

// Network is the network as it is wanted, and what the steps need to make it.
type Network struct {
	Gateway *Gateway       // nil where the profile does without the Gateway API
	Release Wanted         // release cilium in kube-system
	Values  map[string]any // of the release
	PodCIDR string         // k3s's cluster-cidr
	Nodes   []string       // names of all nodes, each of which shall have an agent
}

// Gateway is the Gateway API as the build has it.
type Gateway struct {
	Version     string           // of the bundle, for people
	Definitions []map[string]any // with what comes along, such as the policy against downgrades
	Manifest    Wanted           // the same, in the cluster
}

// Install are the steps that make the network.
func Install(n Network, cluster Restarter) []sequence.Step {
	var steps []sequence.Step
	if n.Gateway != nil {
		steps = append(steps, definitions(*n.Gateway))
	}
	steps = append(steps, installed(n))
	if n.Gateway != nil {
		steps = append(steps, restarted(*n.Gateway, cluster))
	}
	return steps
}

func definitions(g Gateway) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "the Gateway API " + g.Version + " is defined", Deadline: 3 * time.Minute,
		Blind: []sequence.Change{{Verb: sequence.Create, What: "definitions of the Gateway API " + g.Version, Why: "there is no cluster yet"}},
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			if err := complete(g); err != nil {
				return nil, err
			}
			return g.Manifest.Changes(ctx)
		},
		Do: g.Manifest.Apply,
	}
}

func installed(n Network) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "the network is installed", Deadline: 5 * time.Minute,
		Blind: []sequence.Change{{Verb: sequence.Create, What: "Helm release kube-system/cilium", Why: "there is no cluster yet"}},
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			if err := check(n); err != nil {
				return nil, err
			}
			return n.Release.Changes(ctx)
		},
		Do: n.Release.Apply,
	}
}

// Announce is the step that tells Cilium which addresses load balancers may have and
// how they are announced. Its kinds are defined by the operator, so that it comes
// after Ready.
func Announce(pool Wanted) sequence.Step {
	return sequence.Step{
		Layer: layer, Name: "load balancers have addresses", Deadline: 2 * time.Minute,
		Blind:   []sequence.Change{{Verb: sequence.Create, What: "pool of addresses and its announcement", Why: "the network is not installed yet"}},
		Observe: pool.Changes, Do: pool.Apply,
	}
}
