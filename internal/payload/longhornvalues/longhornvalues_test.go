package longhornvalues_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/yamlform"
	"github.com/slipway/slipway/internal/profilefile"
)

var update = flag.Bool("update", false, "write what the tests see to their golden files")

func load(t *testing.T, name string) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestValues(t *testing.T) {
	for _, name := range []string{"lab", "prod"} {
		text, err := yamlform.Marshal("", longhornvalues.Values(load(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".yaml", text)
	}
}

// A cluster of one gets one of everything; the rest would stay pending.
func TestValuesFitTheNodes(t *testing.T) {
	c := load(t, "lab")
	c.Nodes, c.Longhorn.Replicas = c.Nodes[:1], 1
	v, err := json.Marshal(longhornvalues.Values(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"attacherReplicaCount":1`, `"longhornUI":{"replicas":1}`, `"defaultClassReplicaCount":1`, `"defaultReplicaCount":1`} {
		if !strings.Contains(string(v), want) {
			t.Errorf("%s is not in %s", want, v)
		}
	}
}

func TestDisks(t *testing.T) {
	c := load(t, "dev")
	n := c.Nodes[0]
	n.Data = append(n.Data, cluster.DataDisk{Name: "slow"})
	text, err := longhornvalues.Annotation(c, n)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "annotation.json", []byte(text+"\n"))
	n.Data = nil
	if text, err := longhornvalues.Annotation(c, n); text != "" || err != nil {
		t.Errorf("without disks: %q, %v", text, err)
	}
}
