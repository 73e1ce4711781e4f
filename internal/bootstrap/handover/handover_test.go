package handover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

type m = map[string]any

const revision = "main@sha1:aa"

// api is a cluster as a list of objects.
type api struct{ objects []m }

func (a *api) Get(_ context.Context, r object.Ref) (map[string]any, error) {
	for _, o := range a.objects {
		if object.Of(o) == r {
			return o, nil
		}
	}
	return nil, object.ErrNotFound
}

func (a *api) List(_ context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error) {
	var out []map[string]any
	for _, o := range a.objects {
		r := object.Of(o)
		if r.Kind == kind && r.APIVersion == apiVersion && (namespace == "" || r.Namespace == namespace) {
			out = append(out, o)
		}
	}
	return out, nil
}

// syncing is the Kustomization that starts the sync; flux is what happens then.
type syncing struct {
	api  *api
	flux func(*api)
}

func (s syncing) Changes(ctx context.Context) ([]sequence.Change, error) {
	if done, err := Done(ctx, s.api); done || err != nil {
		return nil, err
	}
	return []sequence.Change{{Verb: sequence.Create, What: "sync", Why: "missing"}}, nil
}

func (s syncing) Apply(context.Context, sequence.Tell) error {
	s.api.objects = append(s.api.objects, kustomization("flux-system", "", ""))
	s.flux(s.api)
	return nil
}

func at(kind, apiVersion, namespace, name, born string) m {
	return m{"apiVersion": apiVersion, "kind": kind, "metadata": m{"name": name, "namespace": namespace, "creationTimestamp": "2026-11-30T" + born + "Z"}}
}

func kustomization(name, ready, revision string) m {
	o := at("Kustomization", kustomizeAPI, "flux-system", name, "12:00:00")
	o["status"] = m{"lastAppliedRevision": revision, "conditions": []any{m{"type": "Ready", "status": ready, "message": "building"}}}
	return o
}

func helmRelease(storage string) m {
	o := at("HelmRelease", helmAPI, "kube-system", "cilium", "12:01:00")
	o["status"] = m{"storageNamespace": storage, "conditions": []any{m{"type": "Ready", "status": "True"}}}
	return o
}

func record(namespace, n, born string) m {
	return at("Secret", "v1", namespace, "sh.helm.release.v1.cilium.v"+n, born)
}

func cluster() *api {
	return &api{objects: []m{record("kube-system", "1", "11:00:00"), at("ControllerRevision", "apps/v1", "kube-system", "cilium-1", "11:00:00")}}
}

// adopted is what a good hand-over looks like.
func adopted(a *api) {
	a.objects = a.objects[:len(a.objects)-1]
	a.objects = append(a.objects, kustomization("flux-system", "True", revision), helmRelease("kube-system"), record("kube-system", "2", "12:02:00"))
}

func run(a *api, judge error, flux func(*api), words *[]string) (int, error) {
	steps := Steps(a, syncing{a, flux}, Release{"cilium", "kube-system"},
		func(context.Context) error { return judge },
		func(context.Context) (string, error) { return revision, nil },
		func(context.Context) error { return errors.New("waited for ever") })
	r := sequence.Runner{Now: nowhere, On: func(e sequence.Event) { *words = append(*words, e.Words) }}
	return r.Run(context.Background(), steps)
}

func TestHandover(t *testing.T) {
	var words []string
	a := cluster()
	if did, err := run(a, nil, adopted, &words); err != nil || did != 1 {
		t.Fatalf("did %d, %v", did, err)
	}
	// The gate is for the hand-over; afterwards the repository may change what it likes.
	if did, err := run(a, errors.New("values differ"), adopted, &words); err != nil || did != 0 {
		t.Errorf("the second run did %d, %v", did, err)
	}
	a.objects = append(a.objects, record("kube-system", "3", "13:00:00"), at("ControllerRevision", "apps/v1", "kube-system", "cilium-2", "13:00:00"))
	if did, err := run(a, nil, adopted, &words); err != nil || did != 0 {
		t.Errorf("after an upgrade by Flux: did %d, %v", did, err)
	}
}

func TestNoHandover(t *testing.T) {
	for name, c := range map[string]struct {
		judge error
		flux  func(*api)
		want  string
	}{
		"not in parity": {errors.New("values differ"), adopted, "values differ"},
		"second release": {nil, func(a *api) {
			adopted(a)
			a.objects = append(a.objects, helmRelease("flux-system"), record("flux-system", "1", "12:02:00"))
		}, "two releases named cilium"},
		"pods restarted": {nil, func(a *api) {
			adopted(a)
			a.objects = append(a.objects, at("ControllerRevision", "apps/v1", "kube-system", "cilium-2", "12:02:00"))
		}, "the hand-over restarted pods of cilium"},
		"never ready":    {nil, func(*api) {}, "waited for ever"},
		"other revision": {nil, func(a *api) { adopted(a); a.objects[2] = kustomization("flux-system", "True", "main@sha1:bb") }, "waited for ever"},
		"not adopted":    {nil, func(a *api) { adopted(a); a.objects = append(a.objects[:3], a.objects[4:]...) }, "waited for ever"},
	} {
		t.Run(name, func(t *testing.T) {
			var words []string
			a := cluster()
			_, err := run(a, c.judge, c.flux, &words)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if name == "not in parity" {
				if done, _ := Done(t.Context(), a); done {
					t.Error("the sync was started all the same")
				}
			}
			if strings.Contains(name, "re") && c.want != "waited for ever" && c.judge == nil && diag.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

// A run that was killed while Flux worked waits on.
func TestHandoverResumes(t *testing.T) {
	var words []string
	a := cluster()
	if _, err := run(a, nil, func(*api) {}, &words); err == nil {
		t.Fatal("nothing was ready, and no error")
	}
	if last := words[len(words)-2]; !strings.Contains(last, "flux-system: no report yet") {
		t.Errorf("it waited for %q", last)
	}
	adopted(a)
	if did, err := run(a, nil, nil, &words); err != nil || did != 0 {
		t.Errorf("did %d, %v", did, err)
	}
}

func nowhere() (t time.Time) { return }
