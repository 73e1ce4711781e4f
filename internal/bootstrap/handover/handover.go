// Package handover gives the cluster to Flux: the sync starts only when Flux would
// adopt what runs, and the hand-over counts only when it was seen that it did.
package handover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Cluster reads objects.
type Cluster interface {
	Get(ctx context.Context, r object.Ref) (map[string]any, error)
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error)
}

// Wanted is the Kustomization that starts the sync.
type Wanted interface {
	Changes(ctx context.Context) ([]sequence.Change, error)
	Apply(ctx context.Context, tell sequence.Tell) error
}

// Release is the Helm release that Flux adopts.
type Release struct{ Name, Namespace string }

// APIs of the objects that are looked at.
const (
	kustomizeAPI = "kustomize.toolkit.fluxcd.io/v1"
	helmAPI      = "helm.toolkit.fluxcd.io/v2"
)

// syncRef names the Kustomization that bootstrap applies; all others come from git.
func syncRef() object.Ref {
	return object.Ref{APIVersion: kustomizeAPI, Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"}
}

// deadline of the hand-over: Flux fetches, builds, and upgrades every release once.
const deadline = 20 * time.Minute

// Done says whether the cluster belongs to Flux already: the sync is there, and not
// suspended as it is until the hand-over.
func Done(ctx context.Context, c Cluster) (bool, error) {
	o, err := c.Get(ctx, syncRef())
	if errors.Is(err, object.ErrNotFound) {
		return false, nil
	}
	return err == nil && object.At(o, "spec", "suspend") != true, err
}

// Steps are the gate and the hand-over. judge compares the repository with what
// runs and returns why Flux may not take over; revision is the repository's, such as
// main@sha1:4b1c... .
func Steps(c Cluster, sync Wanted, r Release, judge func(context.Context) error, revision func(context.Context) (string, error), pause func(context.Context) error) []sequence.Step {
	blind := []sequence.Change{{Verb: sequence.Create, What: "Kustomization flux-system", Why: "Flux takes over"}}
	return []sequence.Step{
		{
			Layer: "handover", Name: "Flux would adopt " + r.Name,
			Observe: func(ctx context.Context) ([]sequence.Change, error) {
				if done, err := Done(ctx, c); done || err != nil {
					return nil, err
				}
				return nil, judge(ctx)
			},
		},
		{
			Layer: "handover", Name: "Flux owns the cluster", Deadline: deadline, Blind: blind,
			Observe: func(ctx context.Context) ([]sequence.Change, error) { return observe(ctx, c, sync, r, revision) },
			Do: func(ctx context.Context, tell sequence.Tell) error {
				if err := sync.Apply(ctx, tell); err != nil {
					return err
				}
				return await(ctx, c, r, revision, pause, tell)
			},
		},
	}
}

// observe is what is missing; what cannot be mended by waiting is an error.
func observe(ctx context.Context, c Cluster, sync Wanted, r Release, revision func(context.Context) (string, error)) ([]sequence.Change, error) {
	changes, err := sync.Changes(ctx)
	if err != nil || len(changes) > 0 {
		return changes, err
	}
	waiting, err := look(ctx, c, r, revision)
	if err != nil || waiting == "" {
		return nil, err
	}
	return []sequence.Change{{Verb: sequence.Await, What: waiting, Why: "Flux is at work"}}, nil
}

func await(ctx context.Context, c Cluster, r Release, revision func(context.Context) (string, error), pause func(context.Context) error, tell sequence.Tell) error {
	for {
		waiting, err := look(ctx, c, r, revision)
		if err != nil || waiting == "" {
			return err
		}
		tell(waiting)
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// look gathers what Flux and Helm say, and judges it.
func look(ctx context.Context, c Cluster, r Release, revision func(context.Context) (string, error)) (string, error) {
	want, err := revision(ctx)
	if err != nil {
		return "", err
	}
	var s scene
	for _, l := range []struct {
		into                  *[]map[string]any
		api, kind, ns, labels string
	}{
		{&s.kustomizations, kustomizeAPI, "Kustomization", "", ""},
		{&s.releases, helmAPI, "HelmRelease", "", ""},
		{&s.history, "v1", "Secret", "", "owner=helm,name=" + r.Name},
		{&s.daemons, "apps/v1", "ControllerRevision", r.Namespace, "app.kubernetes.io/part-of=" + r.Name},
		{&s.deployments, "apps/v1", "ReplicaSet", r.Namespace, "app.kubernetes.io/part-of=" + r.Name},
	} {
		if *l.into, err = c.List(ctx, l.api, l.kind, l.ns, l.labels); err != nil && !errors.Is(err, object.ErrNotFound) {
			return "", err
		}
	}
	if problem := s.broken(r); problem != "" {
		return "", exit.With(exit.Refused, diag.WithHint(errors.New(problem),
			"suspend the sync with flux suspend kustomization flux-system, mend the HelmRelease, and compare with bootstrap parity"))
	}
	return s.waiting(r, want), nil
}

// scene is what the cluster shows of the hand-over.
type scene struct {
	kustomizations, releases []map[string]any
	history                  []map[string]any // the Secrets in which Helm records revisions
	daemons, deployments     []map[string]any // the templates that pods have been made from
}

// broken says what went wrong for good: a second release, or new templates, which
// restart every pod.
func (s scene) broken(r Release) string {
	for _, h := range s.history {
		if ns := object.Text(h, "metadata", "namespace"); ns != r.Namespace && s.ours(h) {
			return fmt.Sprintf("there are two releases named %s: Flux has installed one in %s instead of adopting the one in %s", r.Name, ns, r.Namespace)
		}
	}
	started := s.started(r)
	if started.IsZero() || len(after(started, s.history)) > 1 {
		return "" // not begun, or over: what Flux upgraded since then it was told to
	}
	for _, template := range after(started, append(s.daemons, s.deployments...)) {
		return fmt.Sprintf("%s was made after Flux had taken over: the hand-over restarted pods of %s", object.Text(template, "metadata", "name"), r.Name)
	}
	return ""
}

// after are the objects that were made after a time.
func after(t time.Time, objects []map[string]any) []map[string]any {
	var out []map[string]any
	for _, o := range objects {
		if object.Time(o, "metadata", "creationTimestamp").After(t) {
			out = append(out, o)
		}
	}
	return out
}

// ours says whether a Helm record can come from this Flux: a release of the same
// name in a namespace that no HelmRelease stores into is somebody else's.
func (s scene) ours(record map[string]any) bool {
	for _, hr := range s.releases {
		if object.Text(hr, "status", "storageNamespace") == object.Text(record, "metadata", "namespace") {
			return true
		}
	}
	return false
}

// started is when the repository's HelmRelease came into the cluster, which is the
// first thing of the hand-over that the release can feel; zero before.
func (s scene) started(r Release) time.Time {
	if hr := s.adopter(r); hr != nil {
		return object.Time(hr, "metadata", "creationTimestamp")
	}
	return time.Time{}
}

// adopter is the HelmRelease of the release.
func (s scene) adopter(r Release) map[string]any {
	for _, hr := range s.releases {
		if object.Text(hr, "spec", "releaseName") == r.Name || object.Text(hr, "metadata", "name") == r.Name {
			return hr
		}
	}
	return nil
}

// waiting names what is not ready yet; empty when all is.
func (s scene) waiting(r Release, revision string) string {
	var out []string
	for _, k := range s.kustomizations {
		name := "kustomization " + object.Text(k, "metadata", "name")
		at := object.Text(k, "status", "lastAppliedRevision")
		switch {
		case !object.ConditionOf(k, "Ready").True():
			out = append(out, name+": "+object.ConditionOf(k, "Ready").String())
		case at != revision:
			out = append(out, fmt.Sprintf("%s is at %s, the repository at %s", name, at, revision))
		}
	}
	if len(s.kustomizations) == 0 {
		out = append(out, "kustomization flux-system: not there yet")
	}
	return strings.Join(append(out, s.adopting(r)...), "; ")
}

// adopting says what is missing of the adoption of the release.
func (s scene) adopting(r Release) []string {
	switch hr := s.adopter(r); {
	case hr == nil:
		return []string{"helmrelease " + r.Name + ": not there yet"}
	case !object.ConditionOf(hr, "Ready").True():
		return []string{"helmrelease " + r.Name + ": " + object.ConditionOf(hr, "Ready").String()}
	}
	return nil
}
