package bootstrap

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// onlyCilium has a child run the step with Cilium's release, with no further values.
const onlyCilium = envValues + "={}"

// debug is a change of values.
const debug = envValues + `={"debug":{"enabled":true}}`

// firstObject is the write after the record of a release.
func firstObject() func(write) bool {
	recorded := false
	return func(w write) bool {
		defer func() { recorded = recorded || w.record() && w.method == "POST" }()
		return recorded && !w.record()
	}
}

// object20 is the twentieth object after the record.
func object20() func(write) bool {
	n, after := 0, firstObject()
	return func(w write) bool {
		if after(w) {
			n++
		}
		return n == 20
	}
}

// lastWord is the write that calls a revision deployed: a label of its record, in
// JSON or in protobuf, where a length stands between key and value.
func lastWord(w write) bool {
	return w.record() && w.method == "PUT" &&
		(bytes.Contains(w.body, []byte(`"status":"deployed"`)) || bytes.Contains(w.body, []byte("status\x12\x08deployed")))
}

// A run is killed while Helm installs, and while it upgrades. The next one closes
// the record and goes on from what is there.
func (s *suite) killedInsideHelm(t *testing.T) {
	p := controlplane.Start(t, controlplane.Options{})
	r := newRig(t, s.parts, p.KubeconfigBytes())
	g := newGate(t, p)
	r.mustRun(t, r.steps(t)[:1]) // the definitions, which are nothing of Helm's
	for _, c := range []struct {
		name string
		stop func(write) bool
	}{
		{"with the record and no object", firstObject()},
		{"with half of the objects", object20()},
		{"with all objects, before the last word", lastWord},
	} {
		t.Run("install "+c.name, func(t *testing.T) {
			s.killed(t, g, c.stop, onlyCilium)
			r.pending(t, "pending-install")
			if plan := strings.Join(r.plan(t, r.helm(t)), "\n"); !strings.Contains(plan, "revision 1 is pending-install since") {
				t.Errorf("the plan says %q", plan)
			}
			r.finish(t, r.helm(t))
			r.wipe(t, p)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		s.cancelled(t, r, g)
		r.wipe(t, p)
	})
	t.Run("upgrade", func(t *testing.T) { s.killedUpgrades(t, r, g) })
}

// helm is the step with Cilium's release.
func (r *rig) helm(t testing.TB) []sequence.Step {
	t.Helper()
	return r.steps(t)[1:2]
}

// killedUpgrades kills run after run in the middle of an upgrade, of the repair, and
// of the upgrade after it.
func (s *suite) killedUpgrades(t *testing.T, r *rig, g *gate) {
	r.mustRun(t, r.helm(t))
	s.killed(t, g, firstObject(), debug)
	r.pending(t, "pending-upgrade")
	closed := s.killed(t, g, func(w write) bool { return w.n == 2 }, debug)
	if !closed.record() || closed.method != "POST" {
		t.Errorf("after the record was closed came %s", closed)
	}
	if got := r.newest(t); got != "failed" {
		t.Errorf("the closed record is %s", got)
	}
	s.killed(t, g, lastWord, debug)
	r.pending(t, "pending-upgrade")

	r.values = values(t, `{"debug":{"enabled":true}}`)
	defer func() { r.values = nil }()
	r.finish(t, r.helm(t))
	config, err := r.client.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "cilium-config"})
	must(t, err)
	if object.Text(config, "data", "debug") != "true" {
		t.Error("the changed value is not in Cilium's configuration")
	}
}

// finish runs to the end and checks that one more run has nothing to do.
func (r *rig) finish(t *testing.T, steps []sequence.Step) {
	t.Helper()
	if did, _ := r.mustRun(t, steps); did != 1 {
		t.Errorf("the repair did %d steps", did)
	}
	seen := r.versions(t)
	if did, _ := r.mustRun(t, steps); did != 0 {
		t.Errorf("the run after the repair did %d steps", did)
	}
	if moved := moved(seen, r.versions(t)); len(moved) > 0 {
		t.Errorf("the run after the repair changed %s", strings.Join(moved, ", "))
	}
	t.Logf("revisions: %s", strings.Join(r.oneHistory(t), ", "))
	status, err := chart.Client{Kube: r.client}.Status(t.Context(), "cilium", "kube-system")
	must(t, err)
	for _, ref := range status.Objects {
		if _, err := r.client.Get(t.Context(), ref); err != nil {
			t.Errorf("after the repair: %v", err)
		}
	}
}

// pending checks the status of the newest revision, as any Helm would see it.
func (r *rig) pending(t *testing.T, want string) {
	t.Helper()
	if got := r.newest(t); got != want {
		t.Errorf("the newest revision is %s, want %s", got, want)
	}
}

func (r *rig) newest(t *testing.T) string {
	t.Helper()
	status, err := chart.Client{Kube: r.client}.Status(t.Context(), "cilium", "kube-system")
	must(t, err)
	return status.Status
}

// wipe takes a release away again, and its namespace as the namespace controller would.
func (r *rig) wipe(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	status, err := chart.Client{Kube: r.client}.Status(t.Context(), "cilium", "kube-system")
	must(t, err)
	records, err := r.client.List(t.Context(), "v1", "Secret", "kube-system", "owner=helm")
	must(t, err)
	for _, s := range records {
		status.Objects = append(status.Objects, object.Of(s))
	}
	for _, ref := range slices.Backward(status.Objects) {
		must(t, r.client.Delete(t.Context(), ref))
		if ref.Kind == "Namespace" {
			r.standInFinalizer(t, ref)
		}
	}
}

// standInFinalizer ends a namespace that is empty.
func (r *rig) standInFinalizer(t *testing.T, ref object.Ref) {
	t.Helper()
	o, err := r.client.Get(t.Context(), ref)
	must(t, err)
	o["spec"] = map[string]any{}
	data, err := json.Marshal(o)
	must(t, err)
	disco, _ := r.client.Kinds()
	must(t, disco.RESTClient().Put().AbsPath("/api/v1/namespaces/"+ref.Name+"/finalize").Body(data).Do(t.Context()).Error())
}
