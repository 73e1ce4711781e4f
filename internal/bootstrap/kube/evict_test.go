package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/vm-test/controlplane"
)

type m = map[string]any

// Against a real API server: a disruption budget says no, and that is an answer and no
// busy server; what is gone has gone.
func TestEvict(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	c, err := New(p.KubeconfigBytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	labels := m{"app": "db"}
	if err := c.Apply(t.Context(), []map[string]any{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": m{"name": "default", "namespace": "default"}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": "db", "namespace": "default", "labels": labels}, "spec": m{
			"nodeName": "n1", "terminationGracePeriodSeconds": int64(0), "automountServiceAccountToken": false, "containers": []any{m{"name": "c", "image": "c"}},
		}},
		{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": m{"name": "db", "namespace": "default"}, "spec": m{"minAvailable": int64(1), "selector": m{"matchLabels": labels}}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	status := func(group, version, resource, text string) {
		t.Helper()
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
		if _, err := c.objects.Resource(gvr).Namespace("default").Patch(t.Context(), "db", types.MergePatchType, []byte(text), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	status("", "v1", "pods", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	budget := `{"status":{"observedGeneration":1,"disruptionsAllowed":%d,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`
	status("policy", "v1", "poddisruptionbudgets", fmt.Sprintf(budget, 0))
	pod := object.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "db"}
	before := c.Requests()
	blocked, err := c.Evict(t.Context(), pod)
	if err != nil || !strings.Contains(blocked, "disruption budget") || c.Requests()-before > 3 {
		t.Errorf("%q, %v, %d requests", blocked, err, c.Requests()-before)
	}
	if _, err := c.Get(t.Context(), pod); err != nil {
		t.Errorf("it was evicted all the same: %v", err)
	}
	status("policy", "v1", "poddisruptionbudgets", fmt.Sprintf(budget, 1))
	for range 2 {
		if blocked, err := c.Evict(t.Context(), pod); blocked != "" || err != nil {
			t.Errorf("%q, %v", blocked, err)
		}
	}

	node := object.Ref{APIVersion: "v1", Kind: "Node", Name: "n1"}
	if err := c.Apply(t.Context(), []map[string]any{{"apiVersion": "v1", "kind": "Node", "metadata": m{"name": "n1", "labels": m{"ours": "x"}}}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []any{true, nil} {
		if err := c.Patch(t.Context(), node, m{"spec": m{"unschedulable": want}}); err != nil {
			t.Fatal(err)
		}
		o, err := c.Get(t.Context(), node)
		if got := object.At(o, "spec", "unschedulable"); err != nil || got != want || object.Text(o, "metadata", "labels", "ours") != "x" {
			t.Errorf("%v, %v, not %v", got, err, want)
		}
	}
	if err := c.Patch(t.Context(), object.Ref{APIVersion: "v1", Kind: "Node", Name: "n9"}, m{"spec": m{}}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("changing what is not there: %v", err)
	}
}

// While etcd elects a leader the API server passes on what it says.
func TestElection(t *testing.T) {
	said := []string{"etcdserver: leader changed", "etcdserver: request timed out, possibly due to previous leader failure"}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if len(said) > 0 {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":500}`, said[0])
			said = said[1:]
			return
		}
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`)
	})
	if _, err := c.Get(t.Context(), n1); err != nil || len(said) > 0 {
		t.Errorf("%v, %d left", err, len(said))
	}
	said = []string{"etcdserver: mvcc: database space exceeded", "never asked again"}
	if _, err := c.Get(t.Context(), n1); err == nil || len(said) != 1 {
		t.Errorf("%v, %d left", err, len(said))
	}
}
