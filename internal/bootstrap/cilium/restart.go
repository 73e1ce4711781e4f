package cilium

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// operator selects the operator's pods.
const operator = "io.cilium/app=operator"

// ages is what decides about a restart of the operator.
type ages struct {
	definition string    // the one that was changed last
	changed    time.Time // when
	pods       []map[string]any
}

// restarted: an operator that was started before the definitions were there, or before
// they got the versions that it needs, does not look again.
func restarted(g Gateway, cluster Restarter) sequence.Step {
	return sequence.Of(
		sequence.Step{
			Layer: layer, Name: "the operator knows the Gateway API", Deadline: 2 * time.Minute,
			Blind: []sequence.Change{}, // an operator that is yet to start will see them
		},
		func(ctx context.Context) (ages, error) { return age(ctx, g, cluster) },
		func(a ages) ([]sequence.Change, error) { return a.stale(), nil },
		func(ctx context.Context, a ages, tell sequence.Tell) error {
			for _, pod := range a.older() {
				r := object.Of(pod)
				tell("for " + r.String() + " to be replaced")
				if err := cluster.Delete(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
}

func age(ctx context.Context, g Gateway, cluster Restarter) (ages, error) {
	pods, err := cluster.List(ctx, "v1", "Pod", namespace, operator)
	if err != nil || len(pods) == 0 {
		return ages{}, err
	}
	a := ages{pods: pods}
	ours := map[string]bool{}
	for _, d := range g.Definitions {
		ours[object.Of(d).Name] = object.Definition(d)
	}
	definitions, err := cluster.Metadata(ctx, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "")
	if err != nil {
		return a, err
	}
	for _, d := range definitions {
		if name := object.Of(d).Name; ours[name] && changed(d).After(a.changed) {
			a.definition, a.changed = name, changed(d)
		}
	}
	return a, nil
}

// changed is when an object was last changed, other than in its status.
func changed(o map[string]any) time.Time {
	latest := object.Time(o, "metadata", "creationTimestamp")
	for _, entry := range object.Maps(o, "metadata", "managedFields") {
		if at := object.Time(entry, "time"); object.Text(entry, "subresource") == "" && at.After(latest) {
			latest = at
		}
	}
	return latest
}

// older are the pods from before the last change that are not going already.
func (a ages) older() []map[string]any {
	var out []map[string]any
	for _, pod := range a.pods {
		started := object.Time(pod, "metadata", "creationTimestamp")
		if object.Text(pod, "metadata", "deletionTimestamp") == "" && started.Before(a.changed) {
			out = append(out, pod)
		}
	}
	return out
}

func (a ages) stale() []sequence.Change {
	var out []sequence.Change
	for _, pod := range a.older() {
		out = append(out, sequence.Change{Verb: sequence.Alter, What: "restart " + object.Of(pod).String(),
			Why: fmt.Sprintf("it was started before %s was changed at %s, and looks only once", strings.TrimSuffix(a.definition, "."+group), a.changed.UTC().Format("2006-01-02 15:04:05Z"))})
	}
	return out
}
