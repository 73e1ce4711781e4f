package flux

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Reader reads objects of the cluster.
type Reader interface {
	Get(context.Context, object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Pause lets time pass between two looks.
type Pause func(context.Context) error

// Ready are the waits for what Install made: the controllers run, and the source was
// downloaded at revision (such as main@sha1:...; empty means at any).
func Ready(f Flux, source object.Ref, revision string, cluster Reader, pause Pause) []sequence.Step {
	return []sequence.Step{
		until("its controllers run", 10*time.Minute, "controllers of Flux", pause, func(ctx context.Context) ([]sequence.Change, error) {
			return controllers(ctx, f, cluster)
		}),
		until("the repository was downloaded", 5*time.Minute, source.String(), pause, func(ctx context.Context) ([]sequence.Change, error) {
			return at(ctx, cluster, source, revision, "status", "artifact", "revision")
		}),
	}
}

// Synced is the wait for a Kustomization to have applied a revision.
func Synced(kustomization object.Ref, revision string, cluster Reader, pause Pause) sequence.Step {
	return until("the repository was applied", 15*time.Minute, kustomization.String(), pause, func(ctx context.Context) ([]sequence.Change, error) {
		return at(ctx, cluster, kustomization, revision, "status", "lastAppliedRevision")
	})
}

func until(name string, deadline time.Duration, what string, pause Pause, look func(context.Context) ([]sequence.Change, error)) sequence.Step {
	return sequence.Until(sequence.Step{Layer: layer, Name: name, Deadline: deadline,
		Blind: await(what, "Flux is not installed yet")}, look, pause)
}

func await(what, why string) []sequence.Change {
	return []sequence.Change{{Verb: sequence.Await, What: what, Why: why}}
}

// controllers wants every Deployment of the components available in its newest version.
func controllers(ctx context.Context, f Flux, cluster Reader) ([]sequence.Change, error) {
	var out []sequence.Change
	for _, o := range f.Objects {
		r := object.Of(o)
		if r.Kind != "Deployment" {
			continue
		}
		d, err := cluster.Get(ctx, r)
		switch {
		case errors.Is(err, object.ErrNotFound):
			out = append(out, await(r.String(), "is not there")...)
		case err != nil:
			return nil, err
		case object.Int(d, "status", "observedGeneration") < object.Int(d, "metadata", "generation") || object.Int(d, "status", "updatedReplicas") < 1 || object.Int(d, "status", "availableReplicas") < 1:
			why, err := podWords(ctx, cluster, r)
			if err != nil {
				return nil, err
			}
			out = append(out, await(r.String(), why)...)
		}
	}
	return out, nil
}

func podWords(ctx context.Context, cluster Reader, r object.Ref) (string, error) {
	pods, err := cluster.List(ctx, "v1", "Pod", r.Namespace, "app="+r.Name)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		if trouble := object.PodTrouble(pod); trouble != "" {
			return trouble, nil
		}
	}
	return "no pod of it is available", nil
}

// at wants an object of Flux Ready, in its newest generation, at a revision.
func at(ctx context.Context, cluster Reader, r object.Ref, revision string, path ...string) ([]sequence.Change, error) {
	o, err := cluster.Get(ctx, r)
	if errors.Is(err, object.ErrNotFound) {
		return await(r.String(), "is not there"), nil
	}
	if err != nil {
		return nil, err
	}
	if object.Int(o, "status", "observedGeneration") < object.Int(o, "metadata", "generation") {
		return await(r.String(), "its controller has not seen the newest version"), nil
	}
	if c := object.ConditionOf(o, "Ready"); !c.True() {
		return await(r.String(), "is not Ready: "+strings.TrimSpace(c.String())), nil
	}
	if is := object.Text(o, path...); revision != "" && is != revision {
		return await(r.String(), "is at "+is+", awaited is "+revision), nil
	}
	return nil, nil
}
