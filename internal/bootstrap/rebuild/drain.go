package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// crew is what a drain has to move.
type crew struct {
	node map[string]any   // nil when there is nothing to drain
	pods []map[string]any // that have to leave
}

// drained moves the pods of a living node. A dead one cannot end its pods; they are
// deleted with it.
func (r *rebuild) drained() sequence.Step {
	return sequence.Of(r.step("its pods have moved", drainTime), unless(r, r.crew), r.draining, r.drain)
}

func (r *rebuild) crew(ctx context.Context) (c crew, err error) {
	node, err := r.Reader.Get(ctx, r.nodeRef())
	there, err := exists(err)
	if err != nil || !there || !object.ConditionOf(node, "Ready").True() {
		return c, err
	}
	c.node = node
	pods, err := r.Reader.List(ctx, "v1", "Pod", "", "")
	c.pods = leaving(pods, r.Node.Name)
	return c, err
}

// leaving are the pods on a node that somebody has to move. Those of DaemonSets and of
// the node's own files belong to the node; those that have ended are none; and
// Longhorn's instance managers go with the node: they are made anew at once, and hold
// nothing when the pods that use their volumes have left.
func leaving(pods []map[string]any, node string) []map[string]any {
	return slices.DeleteFunc(slices.Clone(pods), func(p map[string]any) bool {
		phase := object.Text(p, "status", "phase")
		owner := owner(p)
		return object.Text(p, "spec", "nodeName") != node || phase == "Succeeded" || phase == "Failed" || owner == "DaemonSet" || owner == "InstanceManager" ||
			object.Text(p, "metadata", "annotations", "kubernetes.io/config.mirror") != ""
	})
}

// owner is the kind of what controls a pod, "" when nothing does.
func owner(pod map[string]any) string {
	for _, o := range object.Maps(pod, "metadata", "ownerReferences") {
		if object.At(o, "controller") == true {
			return object.Text(o, "kind")
		}
	}
	return ""
}

func (r *rebuild) draining(c crew) ([]sequence.Change, error) {
	if c.node == nil {
		return nil, nil
	}
	var out []sequence.Change
	if object.At(c.node, "spec", "unschedulable") != true {
		out = append(out, sequence.Change{Verb: sequence.Alter, What: "Node " + r.Node.Name, Why: "takes no new pods"})
	}
	var moved []string
	for _, p := range c.pods {
		if owner(p) == "" {
			out = append(out, sequence.Change{Verb: sequence.Destroy, What: podName(p), Why: "nothing makes it again"})
			continue
		}
		moved = append(moved, podName(p)[len("Pod "):])
	}
	if len(moved) > 0 {
		out = append(out, sequence.Change{Verb: sequence.Alter, What: fmt.Sprintf("%d pods of %s", len(moved), r.Node.Name), Why: "are evicted: " + strings.Join(moved, ", ")})
	}
	return out, nil
}

func podName(p map[string]any) string { return object.Of(p).String() }

func (r *rebuild) drain(ctx context.Context, _ crew, tell sequence.Tell) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	if err := r.Changer.Patch(ctx, r.nodeRef(), map[string]any{"spec": map[string]any{"unschedulable": true}}); err != nil {
		return err
	}
	for {
		c, err := r.crew(ctx)
		if err != nil {
			return err
		}
		if len(c.pods) == 0 {
			return nil
		}
		words, err := r.evict(ctx, c.pods)
		if err != nil {
			return err
		}
		tell(words)
		if err := r.Pause(ctx); err != nil {
			return err
		}
	}
}

// evict asks every pod to go, and says who stays and why.
func (r *rebuild) evict(ctx context.Context, pods []map[string]any) (string, error) {
	stay := ""
	for _, p := range pods {
		if object.Text(p, "metadata", "deletionTimestamp") != "" {
			if stay == "" {
				stay = podName(p) + " is ending"
			}
			continue
		}
		ref := object.Of(p)
		ref.APIVersion, ref.Kind = "v1", "Pod"
		blocked, err := r.Changer.Evict(ctx, ref)
		if err != nil {
			return "", err
		}
		if blocked != "" {
			stay = podName(p) + ": " + blocked
		}
	}
	words := fmt.Sprintf("for %d pods to leave %s", len(pods), r.Node.Name)
	if stay != "" {
		words += "; " + stay
	}
	return words, nil
}

// uncordoned lets the node take pods. The Node was made anew and takes them already,
// unless somebody has cordoned it since.
func (r *rebuild) uncordoned() sequence.Step {
	return sequence.Of(r.step("it takes pods", armTime), func(ctx context.Context) (cordoned bool, err error) {
		node, err := r.Reader.Get(ctx, r.nodeRef())
		return object.At(node, "spec", "unschedulable") == true, err
	}, func(cordoned bool) ([]sequence.Change, error) {
		if !cordoned {
			return nil, nil
		}
		return []sequence.Change{{Verb: sequence.Alter, What: "Node " + r.Node.Name, Why: "takes pods again"}}, nil
	}, func(ctx context.Context, _ bool, _ sequence.Tell) error {
		return r.Changer.Patch(ctx, r.nodeRef(), map[string]any{"spec": map[string]any{"unschedulable": nil}})
	})
}
