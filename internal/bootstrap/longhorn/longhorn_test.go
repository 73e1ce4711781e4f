package longhorn

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
)

func profile(t *testing.T) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

// marks is a set of marks of which a node may be missing.
type marks struct {
	changes []sequence.Change
	applied bool
}

func (m *marks) Changes(context.Context) ([]sequence.Change, error) {
	return slices.Clone(m.changes), nil
}
func (m *marks) Apply(context.Context, sequence.Tell) error { m.applied = true; return nil }

// A node that has not registered is not made by its label.
func TestMarksMakeNoNode(t *testing.T) {
	m := &marks{changes: []sequence.Change{{Verb: sequence.Alter, What: "Node n1", Why: "differs"}, {Verb: sequence.Create, What: "Node n2", Why: "is missing"}}}
	step := Install(Storage{Cluster: profile(t), Marks: m, Definitions: m})[0]
	changes, err := step.Observe(t.Context())
	if err != nil || len(changes) != 2 || changes[1].Verb != sequence.Await || changes[0].Verb != sequence.Alter {
		t.Errorf("%+v, %v", changes, err)
	}
	if err := step.Do(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), "Node n2 has not registered") || m.applied {
		t.Errorf("%v, applied %v", err, m.applied)
	}
	m.changes = m.changes[:1]
	if err := step.Do(t.Context(), func(string) {}); err != nil || !m.applied {
		t.Errorf("with all nodes: %v, applied %v", err, m.applied)
	}
}

func TestMarks(t *testing.T) {
	c := profile(t)
	c.Nodes[1].Data = nil
	marks, err := Marks(c)
	if err != nil || len(marks) != 2 {
		t.Fatalf("%d marks, %v", len(marks), err)
	}
	m := marks[0]
	if object.Of(m).Name != "n1" || object.Text(m, "metadata", "labels", "node.longhorn.io/create-default-disk") != "config" ||
		!strings.Contains(object.Text(m, "metadata", "annotations", "node.longhorn.io/default-disks-config"), `"path":"/var/lib/longhorn/data"`) {
		t.Errorf("mark %v", m)
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v map[string]any, s *Storage)
		want   string
	}{
		"good": {func(map[string]any, *Storage) {}, ""},
		"system disks": {func(v map[string]any, _ *Storage) {
			delete(v["defaultSettings"].(map[string]any), "createDefaultDiskLabeledNodes")
		}, "it makes a disk on every node's system disk"},
		"too many": {func(_ map[string]any, s *Storage) { s.Cluster.Nodes = s.Cluster.Nodes[:2] }, "persistence.defaultClassReplicaCount is 3 with 2 nodes"},
	} {
		s := Storage{Cluster: profile(t)}
		s.Values = longhornvalues.Values(s.Cluster)
		c.change(s.Values, &s)
		err := check(s)
		if c.want == "" && err != nil || c.want != "" && (exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAdoptable(t *testing.T) {
	given := []map[string]any{{"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a", "labels": map[string]any{"kept": "yes"}}}}
	got := Adoptable(given)[0]
	if object.Text(got, "metadata", "labels", "kept") != "yes" || object.Text(got, "metadata", "labels", "app.kubernetes.io/managed-by") != "Helm" ||
		object.Text(got, "metadata", "annotations", "meta.helm.sh/release-name") != "longhorn" {
		t.Errorf("got %v", got)
	}
	if object.At(given[0], "metadata", "annotations") != nil {
		t.Error("what was given is changed")
	}
}
