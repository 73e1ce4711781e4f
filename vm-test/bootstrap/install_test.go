package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/controlplane"
)

// suite is what the tests share: the parts, and what an undisturbed run came to.
type suite struct {
	parts   parts
	steps   int               // that did something
	content map[string]string // of the cluster after it
}

// TestInstall installs everything, again, and under kills. Each part of it has a
// cluster of its own.
func TestInstall(t *testing.T) {
	s := &suite{parts: load(t)}
	if !t.Run("twice", s.twice) {
		t.Fatal("the others compare with it")
	}
	t.Run("what pods would tell", s.ready)
	t.Run("killed between steps", s.killedBetweenSteps)
	t.Run("killed inside steps", s.killedInsideSteps)
	t.Run("killed inside of Helm", s.killedInsideHelm)
}

// A second run changes nothing: no object gets another resourceVersion, Helm writes
// no revision, and it asks little.
func (s *suite) twice(t *testing.T) {
	r := newRig(t, s.parts, controlplane.Start(t, controlplane.Options{}).KubeconfigBytes())
	r.standInNodes(t)
	r.checkPlan(t)

	before, since := r.client.Requests(), time.Now()
	s.steps, _ = r.mustRun(t, r.steps(t))
	t.Logf("first run: %d steps, %d requests, %s", s.steps, r.client.Requests()-before, time.Since(since).Round(time.Millisecond))
	if plan := r.plan(t, r.steps(t)); len(plan) > 0 {
		t.Errorf("after it the plan is %q", plan)
	}

	s.content = r.content(t)
	seen := r.versions(t)
	before, since = r.client.Requests(), time.Now()
	if did, _ := r.mustRun(t, r.steps(t)); did != 0 {
		t.Errorf("the second run did %d steps", did)
	}
	requests, objects := r.client.Requests()-before, int64(r.owned(t))
	t.Logf("second run: %d objects, %d requests, %s", objects, requests, time.Since(since).Round(time.Millisecond))
	if requests > 3*objects {
		t.Errorf("%d requests for %d objects, more than 3 each", requests, objects)
	}
	if moved := moved(seen, r.versions(t)); len(moved) > 0 {
		t.Errorf("the second run changed %s", strings.Join(moved, ", "))
	}
	if revisions := r.oneHistory(t); len(revisions) != 1 {
		t.Errorf("revisions %q", revisions)
	}
}

// checkPlan plans against the empty cluster: everything is named, nothing is made.
func (r *rig) checkPlan(t *testing.T) {
	t.Helper()
	before := r.versions(t)
	planned := r.plan(t, r.steps(t))
	for _, want := range []string{
		"cilium: create CustomResourceDefinition gateways.gateway.networking.k8s.io: is missing",
		"cilium: create Helm release kube-system/cilium, chart cilium-1.20.2: is not installed",
		`longhorn: change Node n1: metadata.annotations, metadata.labels["node.longhorn.io/create-default-disk"] differ`,
		"longhorn: create CustomResourceDefinition volumes.longhorn.io: is missing",
		"flux: create Deployment flux-system/kustomize-controller: is missing",
		"flux: create Secret flux-system/sops-age: is missing",
		"flux: create Kustomization flux-system/flux-system: is missing",
	} {
		if !slices.Contains(planned, want) {
			t.Errorf("the plan does not say %q; it says\n%s", want, strings.Join(planned, "\n"))
		}
	}
	if moved := moved(before, r.versions(t)); len(moved) > 0 {
		t.Errorf("planning changed %s", strings.Join(moved, ", "))
	}
}
