package cilium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Ready are the waits for what Install made. dial reaches the agents.
func Ready(n Network, cluster Reader, dial Agent, pause Pause) []sequence.Step {
	steps := []sequence.Step{wait("agents and operator run", "", rollout, "pods of Cilium", pause, func(ctx context.Context) ([]sequence.Change, error) {
		return rolledOut(ctx, cluster, len(n.Nodes))
	})}
	for _, node := range n.Nodes {
		steps = append(steps, wait("the agent is healthy", node, 10*time.Minute, "agent on "+node, pause, func(ctx context.Context) ([]sequence.Change, error) {
			return healthy(ctx, node, dial), nil
		}))
	}
	if n.Gateway != nil {
		steps = append(steps, wait("Gateways are served", "", 5*time.Minute, "GatewayClass cilium", pause, func(ctx context.Context) ([]sequence.Change, error) {
			return accepted(ctx, cluster)
		}))
	}
	return steps
}

func wait(name, node string, deadline time.Duration, what string, pause Pause, look func(context.Context) ([]sequence.Change, error)) sequence.Step {
	return sequence.Until(sequence.Step{Layer: layer, Name: name, Node: node, Deadline: deadline,
		Blind: []sequence.Change{{Verb: sequence.Await, What: what, Why: "the network is not installed yet"}}}, look, pause)
}

func await(what, why string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Await, What: what, Why: why}}
}

// rolledOut wants the newest agent on every node, and one operator. The second
// operator of a cluster that has one node left can wait; the network does not.
func rolledOut(ctx context.Context, cluster Reader, nodes int) ([]sequence.Change, error) {
	agents := object.Ref{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: namespace, Name: "cilium"}
	d, err := cluster.Get(ctx, agents)
	if errors.Is(err, object.ErrNotFound) {
		return await(agents.String(), "is not there"), nil
	}
	if err != nil {
		return nil, err
	}
	if why := agentsMissing(d, int64(nodes)); why != "" {
		return podWords(ctx, cluster, "k8s-app=cilium", agents.String(), why)
	}
	deployment := object.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "cilium-operator"}
	o, err := cluster.Get(ctx, deployment)
	switch {
	case errors.Is(err, object.ErrNotFound):
		return await(deployment.String(), "is not there"), nil
	case err != nil:
		return nil, err
	case object.Int(o, "status", "availableReplicas") < 1:
		return podWords(ctx, cluster, operator, deployment.String(), "no pod of it is available")
	}
	return nil, nil
}

func agentsMissing(d map[string]any, nodes int64) string {
	of := func(field string) int64 { return object.Int(d, "status", field) }
	switch desired := of("desiredNumberScheduled"); {
	case of("observedGeneration") < object.Int(d, "metadata", "generation"):
		return "its controller has not seen the newest version"
	case desired < nodes:
		return fmt.Sprintf("it is wanted on %d of %d nodes; the others have not joined or refuse it", desired, nodes)
	case of("updatedNumberScheduled") < desired:
		return fmt.Sprintf("%d of %d nodes have the newest version", of("updatedNumberScheduled"), desired)
	case of("numberReady") < desired:
		return fmt.Sprintf("ready on %d of %d nodes", of("numberReady"), desired)
	}
	return ""
}

// podWords adds what the first pod that is not ready says about itself.
func podWords(ctx context.Context, cluster Reader, selector, what, why string) ([]sequence.Change, error) {
	pods, err := cluster.List(ctx, "v1", "Pod", namespace, selector)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if trouble := object.PodTrouble(pod); trouble != "" {
			return await(what, why+"; "+trouble), nil
		}
	}
	return await(what, why), nil
}

// accepted: the operator takes care of Gateways.
func accepted(ctx context.Context, cluster Reader) ([]sequence.Change, error) {
	class := object.Ref{APIVersion: group + "/v1", Kind: "GatewayClass", Name: "cilium"}
	o, err := cluster.Get(ctx, class)
	if errors.Is(err, object.ErrNotFound) {
		return await(class.String(), "is not there; the chart makes it when the definitions are served"), nil
	}
	if err != nil {
		return nil, err
	}
	if c := object.ConditionOf(o, "Accepted"); !c.True() {
		return await(class.String(), "is not accepted: "+c.String()), nil
	}
	return nil, nil
}
