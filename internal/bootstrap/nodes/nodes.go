// Package nodes waits for what a network makes possible: every node is Ready, and
// names are resolved. No step before it waits for a node to be Ready, because without
// a network none is.
package nodes

import (
	"context"
	"errors"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

const layer = "nodes"

// Reader reads objects of the cluster.
type Reader interface {
	Get(context.Context, object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Pause lets time pass between two looks.
type Pause func(context.Context) error

// Ready are the waits: one for each node of the profile, then CoreDNS.
func Ready(names []string, cluster Reader, pause Pause) []sequence.Step {
	var steps []sequence.Step
	for _, name := range names {
		steps = append(steps, sequence.Until(sequence.Step{
			Layer: layer, Name: "is Ready", Node: name, Deadline: 10 * time.Minute,
			Blind: await("node "+name, "there is no network yet"),
		}, func(ctx context.Context) ([]sequence.Change, error) { return ready(ctx, name, cluster) }, pause))
	}
	return append(steps, sequence.Until(sequence.Step{
		Layer: layer, Name: "CoreDNS answers", Deadline: 10 * time.Minute,
		Blind: await("CoreDNS", "there is no network yet"),
	}, func(ctx context.Context) ([]sequence.Change, error) { return resolving(ctx, cluster) }, pause))
}

func await(what, why string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Await, What: what, Why: why}}
}

func ready(ctx context.Context, name string, cluster Reader) ([]sequence.Change, error) {
	node, err := cluster.Get(ctx, object.Ref{APIVersion: "v1", Kind: "Node", Name: name})
	if errors.Is(err, object.ErrNotFound) {
		return await("node "+name, "has not registered"), nil
	}
	if err != nil {
		return nil, err
	}
	if c := object.ConditionOf(node, "Ready"); !c.True() {
		return await("node "+name, "is not Ready: "+c.String()), nil
	}
	return nil, nil
}

// resolving wants one pod of CoreDNS that is available, and an address behind its
// Service: a pod alone answers nobody.
func resolving(ctx context.Context, cluster Reader) ([]sequence.Change, error) {
	deployment := object.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "coredns"}
	d, err := cluster.Get(ctx, deployment)
	switch {
	case errors.Is(err, object.ErrNotFound):
		return await("CoreDNS", "k3s has not installed it yet"), nil
	case err != nil:
		return nil, err
	case object.Int(d, "status", "availableReplicas") > 0:
		return behind(ctx, cluster)
	}
	pods, err := cluster.List(ctx, "v1", "Pod", "kube-system", "k8s-app=kube-dns")
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if trouble := object.PodTrouble(pod); trouble != "" {
			return await("CoreDNS", trouble), nil
		}
	}
	return await("CoreDNS", "no pod of it is available"), nil
}

func behind(ctx context.Context, cluster Reader) ([]sequence.Change, error) {
	slices, err := cluster.List(ctx, "discovery.k8s.io/v1", "EndpointSlice", "kube-system", "kubernetes.io/service-name=kube-dns")
	if err != nil {
		return nil, err
	}
	for _, s := range slices {
		for _, e := range object.Maps(s, "endpoints") {
			if object.At(e, "conditions", "ready") == true {
				return nil, nil
			}
		}
	}
	return await("CoreDNS", "no address is ready behind its Service"), nil
}
