package longhorn

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
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

// hosts is what the nodes say, and what they were told to take.
type hosts struct {
	of    map[string][]facts.Mount
	taken []string
}

func (d *hosts) Data(_ context.Context, node string) ([]facts.Mount, error) { return d.of[node], nil }

func (d *hosts) Take(_ context.Context, node string, w facts.Wanted) error {
	d.taken = append(d.taken, node)
	for _, disk := range w.Disks {
		d.of[node] = append(d.of[node], facts.Mount{Name: disk.Name, Path: disk.Path, UUID: "made-on-" + node, Mounted: true})
	}
	return nil
}

func mount(uuid string) facts.Mount {
	return facts.Mount{Name: "data", Path: "/var/lib/longhorn/data", UUID: uuid, Mounted: true}
}

func runner() sequence.Runner {
	return sequence.Runner{Now: time.Now, On: func(sequence.Event) {}}
}

func TestMounted(t *testing.T) {
	d := &hosts{of: map[string][]facts.Mount{"n1": {mount("a")}}}
	steps := Mounted(profile(t), d)
	if did, err := runner().Run(t.Context(), steps); err != nil || did != 2 || strings.Join(d.taken, " ") != "n2 n3" {
		t.Errorf("did %d, %v, took %q", did, err, d.taken)
	}
	if did, err := runner().Run(t.Context(), steps); err != nil || did != 0 {
		t.Errorf("the second run did %d, %v", did, err)
	}
}

func TestMissing(t *testing.T) {
	c := profile(t)
	elsewhere, unmounted := mount("a"), mount("a")
	elsewhere.Path, unmounted.Mounted = "/mnt", false
	for name, tt := range map[string]struct {
		is   []facts.Mount
		want string
	}{
		"mounted":   {[]facts.Mount{mount("a")}, ""},
		"not taken": {nil, "create data disk data at /var/lib/longhorn/data: the node has not taken it"},
		"elsewhere": {[]facts.Mount{elsewhere}, "change data disk data at /var/lib/longhorn/data: is at /mnt"},
		"unmounted": {[]facts.Mount{unmounted}, "change data disk data at /var/lib/longhorn/data: is not mounted"},
	} {
		got := ""
		for _, change := range missing(c, c.Nodes[0], tt.is) {
			got += string(change.Verb) + " " + change.What + ": " + change.Why
		}
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Two nodes with one file system, copied, are refused, and both are named.
func TestCopiedDisk(t *testing.T) {
	d := &hosts{of: map[string][]facts.Mount{"n1": {mount("same")}, "n2": {mount("other")}, "n3": {mount("same")}}}
	_, err := runner().Run(t.Context(), Mounted(profile(t), d))
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "data disk data of n1 and data disk data of n3 have the same file system, UUID same") || diag.HintOf(err) == "" {
		t.Errorf("got %v", err)
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
