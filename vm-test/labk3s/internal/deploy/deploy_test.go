package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	s := settings.Settings{ClusterDNS: "10.99.0.10", ClusterDomain: "cluster.test", SystemRegistry: "registry.test/"}
	if err := Stage(dir, s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "coredns.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "%{") {
		t.Error("a placeholder is left")
	}
	objects, err := objectsOf(text)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
		if o.GetKind() != "Service" {
			continue
		}
		if spec := o.Object["spec"].(map[string]any); spec["clusterIP"] != "10.99.0.10" {
			t.Errorf("the service has the address %v", spec["clusterIP"])
		}
	}
	if want := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Service"}; !slices.Equal(kinds, want) {
		t.Errorf("the objects are %v, want %v", kinds, want)
	}
	if !strings.Contains(string(text), "registry.test/"+CoreDNSImage) {
		t.Error("the image is not from the registry")
	}
	s.Disable = []string{"coredns", "traefik"}
	if err := Stage(dir, s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "coredns.yaml")); err == nil {
		t.Error("a component that is not wanted is there")
	}
}

func TestWanted(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]bool{"a.yaml": true, "b.YML": true, "c.json": true, "d.txt": false, "e.yaml": false} {
		path := filepath.Join(dir, name)
		write(t, path, "")
		if name == "e.yaml" {
			write(t, path+".skip", "")
		}
		if got := wanted(path); got != want {
			t.Errorf("%s is wanted: %v", name, got)
		}
	}
}

func TestObjectsOf(t *testing.T) {
	objects, err := objectsOf([]byte(`
# only a comment
---
kind: A
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {kind: B, apiVersion: v1, metadata: {name: b}}
- {kind: C, apiVersion: v1, metadata: {name: c}}
---
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("the objects are %v", names)
	}
	if _, err := objectsOf([]byte("a: [")); err == nil {
		t.Error("a broken file has objects")
	}
}
