package bootstrap

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/payload/object"
)

// What a real API server makes of objects, and what of that counts as a difference.
func (r *rig) driver(t *testing.T) {
	ref := object.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "ship"}
	wanted := deployment(ref, "app", "ship")
	container := wanted["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"limits": map[string]any{"cpu": "1000m", "memory": "0.5Gi"}} // the server writes 1 and 512Mi
	container["env"] = []any{map[string]any{"name": "MAST", "value": "1"}}
	check := func(what string, want ...string) {
		t.Helper()
		changes, err := r.client.Changes(t.Context(), []map[string]any{wanted})
		must(t, err)
		if differs, err := r.client.Differs(t.Context(), wanted); err != nil || differs != (len(want) > 0) {
			t.Errorf("%s: differs %v, %v", what, differs, err)
		}
		if len(changes) != len(want) || len(want) > 0 && string(changes[0].Verb)+": "+changes[0].Why != want[0] {
			t.Errorf("%s: %+v, want %q", what, changes, want)
		}
	}
	apply := func() {
		t.Helper()
		must(t, r.client.Apply(t.Context(), []map[string]any{wanted}, nil))
	}
	check("before", "create: is missing")
	apply()
	check("with the server's defaults")

	other := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "ship", "namespace": "default", "labels": map[string]any{"theirs": "kept"}},
		"spec": map[string]any{"replicas": int64(2)}}
	r.standIn(t, other)
	check("with fields of somebody else")
	wanted["spec"].(map[string]any)["replicas"] = int64(1)
	check("with a field that both set", "change: spec.replicas differs")
	apply()
	check("after ours was set")

	delete(container, "env")
	check("with a field that is not wanted any more", "change: spec.template.spec.containers[0].env differs")
	apply()
	live, err := r.client.Get(t.Context(), ref)
	must(t, err)
	if env := object.At(live, "spec", "template", "spec", "containers"); strings.Contains(strings.ToUpper(toText(t, env)), "MAST") {
		t.Errorf("what is not wanted any more is still there: %v", env)
	}
	if object.Text(live, "metadata", "labels", "theirs") != "kept" {
		t.Error("somebody else's label is gone")
	}
	r.secretsStayUnsaid(t)
}

func toText(t *testing.T, v any) string {
	t.Helper()
	return plain(t, map[string]any{"metadata": map[string]any{"uid": "none"}, "v": v})
}

// The plan for a changed Secret tells no value, neither the old nor the new one.
func (r *rig) secretsStayUnsaid(t *testing.T) {
	secret := func(value string) []map[string]any {
		return []map[string]any{{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "default"},
			"data": map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(value))}}}
	}
	must(t, r.client.Apply(t.Context(), secret("canary-old"), nil))
	changes, err := r.client.Changes(t.Context(), secret("canary-new"))
	must(t, err)
	if len(changes) != 1 || changes[0].Why != "data.key differs" {
		t.Errorf("changes %+v", changes)
	}
}

// A run that is told to stop in the middle of Helm's work stops: nothing goes on
// behind its back, and the next run ends it.
func (s *suite) cancelled(t *testing.T, r *rig, g *gate) {
	through := newRig(t, s.parts, g.kubeconfig())
	g.until(object20())
	defer g.until(nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		ended <- chart.Client{Kube: through.client}.Apply(ctx, through.release(nil), nil)
	}()
	select {
	case w := <-g.held:
		t.Logf("cancelled at %s", w)
	case err := <-ended:
		t.Fatalf("it ended before it was held: %v", err)
	case <-time.After(patience):
		t.Fatal("it was not held")
	}
	stop := errors.New("stopped by hand")
	cancel(stop)
	select {
	case err := <-ended:
		if !errors.Is(err, stop) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	g.until(nil)
	seen := r.versions(t)
	r.pending(t, "pending-install")
	if moved := moved(seen, r.versions(t)); len(moved) > 0 {
		t.Errorf("after the end these changed: %s", strings.Join(moved, ", "))
	}
	r.finish(t, r.helm(t))
}
