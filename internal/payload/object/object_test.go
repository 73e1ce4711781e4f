package object_test

import (
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/payload/object"
)

func thing(apiVersion, kind, namespace, name string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}
}

func TestSorted(t *testing.T) {
	given := []map[string]any{
		thing("source.toolkit.fluxcd.io/v1", "GitRepository", "f", "git"),
		thing("serving.knative.dev/v1", "Service", "f", "knative"),
		thing("apps/v1", "Deployment", "f", "deployment"),
		thing("v1", "Service", "f", "service"),
		thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "b"),
		thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "a"),
		thing("v1", "Namespace", "", "f"),
	}
	var got []string
	for _, o := range object.Sorted(given) {
		got = append(got, object.Of(o).Name)
	}
	want := []string{"f", "b", "a", "service", "deployment", "git", "knative"}
	if !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if object.Of(given[0]).Name != "git" {
		t.Error("the list that was given has another order now")
	}
}

func TestReferences(t *testing.T) {
	for _, c := range []struct {
		o           map[string]any
		text, group string
	}{
		{thing("apps/v1", "Deployment", "kube-system", "cilium-operator"), "Deployment kube-system/cilium-operator", "apps"},
		{thing("v1", "Node", "", "n1"), "Node n1", ""},
		{nil, " ", ""},
	} {
		if r := object.Of(c.o); r.String() != c.text || r.Group() != c.group {
			t.Errorf("%q of group %q, want %q of %q", r, r.Group(), c.text, c.group)
		}
	}
}

func TestDifferences(t *testing.T) {
	a := map[string]any{"kept": int64(1), "spec": map[string]any{"list": []any{"x", map[string]any{"y": "1"}}, "gone": true}, "metadata": map[string]any{"labels": map[string]any{"a.b/c": "1"}}}
	b := map[string]any{"kept": int64(1), "spec": map[string]any{"list": []any{"x", map[string]any{"y": "2"}}, "new": "n"}, "metadata": map[string]any{"labels": map[string]any{"a.b/c": "2"}}}
	want := []string{`metadata.labels["a.b/c"]`, "spec.gone", "spec.list[1].y", "spec.new"}
	if got := object.Differences(a, b); !slices.Equal(got, want) {
		t.Errorf("differences %q, want %q", got, want)
	}
	if got := object.Differences(a, a); len(got) != 0 {
		t.Errorf("an object differs from itself: %q", got)
	}
	if got := object.Differences(map[string]any{"l": []any{"a"}}, map[string]any{"l": []any{"a", "b"}}); !slices.Equal(got, []string{"l"}) {
		t.Errorf("a longer list: %q", got)
	}
}

func TestConditionOf(t *testing.T) {
	o := map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized"},
		map[string]any{"type": "Other", "status": "True"},
	}}}
	for kind, want := range map[string]string{"Ready": "cni plugin not initialized", "Other": "is True", "None": "no report yet"} {
		if got := object.ConditionOf(o, kind); got.String() != want || got.True() != (kind == "Other") {
			t.Errorf("%s: %q, true %v; want %q", kind, got, got.True(), want)
		}
	}
}

func TestReading(t *testing.T) {
	o := map[string]any{"n": int64(3), "f": 4.0, "t": "2026-01-02T03:04:05Z", "l": []any{"no map", map[string]any{"a": "b"}}}
	if object.Int(o, "n") != 3 || object.Int(o, "f") != 4 || object.Int(o, "t") != 0 || object.Int(o, "n", "deeper") != 0 {
		t.Error("whole numbers")
	}
	if got := object.Time(o, "t"); got.Year() != 2026 || !object.Time(o, "n").IsZero() {
		t.Errorf("time %v", got)
	}
	if got := object.Maps(o, "l"); len(got) != 1 || object.Text(got[0], "a") != "b" {
		t.Errorf("maps %v", got)
	}
}
