package rebuild

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

type m = map[string]any

func pod(name, node, owner, phase string, annotations m) m {
	meta := m{"name": name, "namespace": "default", "annotations": annotations}
	if owner != "" {
		meta["ownerReferences"] = []any{m{"kind": "Other", "name": "x"}, m{"kind": owner, "name": "x", "controller": true}}
	}
	return m{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": m{"nodeName": node}, "status": m{"phase": phase}}
}

func TestLeaving(t *testing.T) {
	pods := []map[string]any{
		pod("web", "n1", "ReplicaSet", "Running", nil), pod("db", "n1", "StatefulSet", "Pending", nil), pod("alone", "n1", "", "Running", nil),
		pod("agent", "n1", "DaemonSet", "Running", nil), pod("static", "n1", "Node", "Running", m{"kubernetes.io/config.mirror": "x"}),
		pod("job", "n1", "Job", "Succeeded", nil), pod("crashed", "n1", "Job", "Failed", nil), pod("engine", "n1", "InstanceManager", "Running", nil),
		pod("elsewhere", "n2", "ReplicaSet", "Running", nil), pod("nowhere", "", "ReplicaSet", "Pending", nil),
	}
	var got []string
	for _, p := range leaving(pods, "n1") {
		got = append(got, podName(p))
	}
	if want := []string{"Pod default/web", "Pod default/db", "Pod default/alone"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	r := &rebuild{Options: Options{Node: cluster.Node{Name: "n1"}}}
	changes, err := r.draining(crew{node: m{"spec": m{"unschedulable": true}}, pods: leaving(pods, "n1")})
	if err != nil || len(changes) != 2 || changes[0] != (sequence.Change{Verb: sequence.Destroy, What: "Pod default/alone", Why: "nothing makes it again"}) ||
		changes[1].Why != "are evicted: default/web, default/db" || changes[1].What != "2 pods of n1" {
		t.Errorf("%+v, %v", changes, err)
	}
	if changes, err := r.draining(crew{}); err != nil || changes != nil {
		t.Errorf("a dead node: %v, %v", changes, err)
	}
}

func TestNotes(t *testing.T) {
	at := time.Date(2026, 5, 1, 10, 0, 0, 123456789, time.UTC)
	for _, before := range []time.Time{at, {}} {
		if id, is, ok := noted(note("rebuild-n1-X.3", before)); id != "rebuild-n1-X.3" || !is.Equal(before) || !ok {
			t.Errorf("%s, %s, %v", id, is, ok)
		}
	}
	for _, text := range []string{"", "x", "x after yesterday"} {
		if _, _, ok := noted(text); ok {
			t.Errorf("%q is a note", text)
		}
	}
}

func TestPasswordName(t *testing.T) {
	if got := passwordRef("Node-A").String(); got != "Secret kube-system/node-a.node-password.k3s" {
		t.Error(got)
	}
}

func TestQuoted(t *testing.T) {
	for _, word := range []string{"/var/lib/longhorn/data", "it's; $(rm) `x` \"y\"", "", "a\nb"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q became %q, %v", word, out, err)
		}
	}
}

func TestWiped(t *testing.T) {
	disks := []cluster.DataDisk{{Name: "a", Policy: cluster.PolicyKeep}, {Name: "b", Policy: cluster.PolicyWipe}}
	for policy, want := range map[cluster.Policy]string{"": "/d/b", cluster.PolicyKeep: "", cluster.PolicyWipe: "/d/a /d/b"} {
		r := &rebuild{Options: Options{
			Cluster: cluster.Cluster{Longhorn: cluster.Longhorn{DataPath: "/d"}}, Node: cluster.Node{Data: disks}, Order: verdict.Order{Data: policy},
		}}
		if got := strings.Join(r.wiped(), " "); got != want {
			t.Errorf("%q: %s, not %s", policy, got, want)
		}
	}
}

// blocking is an API server that lets web go and db not.
type blocking struct{ Changer }

func (blocking) Evict(_ context.Context, r object.Ref) (string, error) {
	switch {
	case r.APIVersion != "v1" || r.Kind != "Pod":
		return "", errors.New("evicts " + r.String())
	case r.Name == "db":
		return "the disruption budget does not allow it", nil
	}
	return "", nil
}

// A drain that is not allowed says whose budget forbids it, and ends with its deadline.
func TestDrainIsBlocked(t *testing.T) {
	r := &rebuild{Options: Options{Node: cluster.Node{Name: "n1"}, Changer: blocking{}}}
	words, err := r.evict(t.Context(), []map[string]any{pod("web", "n1", "ReplicaSet", "Running", nil), pod("db", "n1", "StatefulSet", "Running", nil)})
	if err != nil || words != "for 2 pods to leave n1; Pod default/db: the disruption budget does not allow it" {
		t.Errorf("%q, %v", words, err)
	}
}
