package ciliumvalues_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
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

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := yamlform.Marshal("", v)
	if err != nil {
		t.Fatal(err)
	}
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

func TestProfiles(t *testing.T) {
	for _, name := range []string{"lab", "dev", "prod"} {
		c := load(t, name)
		golden(t, name+".yaml", ciliumvalues.Values(c))
		golden(t, name+"-objects.yaml", ciliumvalues.Objects(c))
	}
}

// The port is the API server's own only where every node has one (pitfall 14), and
// the operators fit the nodes (pitfall 18).
func TestFollowsTheNodes(t *testing.T) {
	c := load(t, "dev")
	agent := c.Nodes[2]
	agent.Role = cluster.RoleAgent
	for _, tt := range []struct {
		nodes           []cluster.Node
		port, operators int64
	}{
		{c.Nodes, 6443, 2},
		{c.Nodes[:1], 6443, 1},
		{[]cluster.Node{c.Nodes[0], agent}, 6444, 2},
	} {
		c := c
		c.Nodes = tt.nodes
		v := ciliumvalues.Values(c)
		operator, _ := v["operator"].(map[string]any)
		if v["k8sServicePort"] != tt.port || operator["replicas"] != tt.operators || v["k8sServiceHost"] != "127.0.0.1" {
			t.Errorf("%d nodes: %v, %v", len(tt.nodes), v["k8sServicePort"], operator)
		}
	}
}

// chart is the chart of the very version, out of the module of the same name.
func chart(t *testing.T) string {
	t.Helper()
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "go", Args: []string{"list", "-m", "-f", "{{.Dir}}", "github.com/cilium/cilium"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(string(bytes.TrimSpace(out)), "install", "kubernetes", "cilium")
}

// The real chart takes the values: its schema knows every key, its own checks pass,
// and what comes out is configured as was asked for.
func TestRealChart(t *testing.T) {
	ch, err := loader.Load(chart(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lab", "dev"} {
		c := load(t, name)
		if ch.Metadata.Version != c.Cilium.Version {
			t.Fatalf("the chart is %s, the profile wants %s", ch.Metadata.Version, c.Cilium.Version)
		}
		values, err := chartutil.ToRenderValues(ch, ciliumvalues.Values(c), chartutil.ReleaseOptions{Name: ciliumvalues.Release, Namespace: ciliumvalues.Namespace}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.Render(ch, values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		config := data(t, files["cilium/templates/cilium-configmap.yaml"])
		for key, want := range map[string]string{
			"kube-proxy-replacement": "true", "ipam": "cluster-pool", "cluster-pool-ipv4-cidr": "10.42.0.0/16", "cluster-pool-ipv4-mask-size": "24",
			"routing-mode": "tunnel", "tunnel-protocol": "vxlan", "enable-ipv4": "true", "enable-ipv6": "false",
			"enable-l7-proxy":          map[string]string{"lab": "false", "dev": "true"}[name],
			"enable-hubble":            map[string]string{"lab": "false", "dev": "true"}[name],
			"enable-gateway-api":       map[string]string{"dev": "true"}[name],
			"enable-l2-announcements":  map[string]string{"dev": "true"}[name],
			"external-envoy-proxy":     map[string]string{"lab": "false", "dev": "true"}[name],
			"devices":                  "",
			"policy-cidr-match-mode":   "",
			"enable-bandwidth-manager": "",
		} {
			if config[key] != want && !(want == "" && config[key] == "false") {
				t.Errorf("%s: %s is %q, want %q", name, key, config[key], want)
			}
		}
		class := files["cilium/templates/cilium-gateway-api-class.yaml"]
		if got := bytes.Contains([]byte(class), []byte("kind: GatewayClass")); got != (name == "dev") {
			t.Errorf("%s: GatewayClass rendered: %v", name, got)
		}
		agent := files["cilium/templates/cilium-agent/daemonset.yaml"]
		for _, want := range []string{"cilium.io/cilium-configmap-checksum", `value: "127.0.0.1"`, `value: "6443"`, "quay.io/cilium/cilium:v1.20.2\""} {
			if !bytes.Contains([]byte(agent), []byte(want)) {
				t.Errorf("%s: the agent has no %s", name, want)
			}
		}
	}
}

func data(t *testing.T, manifest string) map[string]string {
	t.Helper()
	var m struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(manifest), &m); err != nil {
		t.Fatal(err)
	}
	return m.Data
}

// Values are what JSON decodes to: who compares them with values out of a repository
// compares the same forms.
func TestValuesAreJSON(t *testing.T) {
	v := ciliumvalues.Values(load(t, "dev"))
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]any
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(again)
	if err != nil || !bytes.Equal(text, second) {
		t.Errorf("%s\n%s\n%v", text, second, err)
	}
}

// A pool never gives out the addresses of the LAN that no host may have.
func TestPoolEdges(t *testing.T) {
	for _, tt := range []struct{ lan, pool, first, last string }{
		{"192.168.20.0/24", "192.168.20.192/26", "192.168.20.192", "192.168.20.254"},
		{"192.168.20.0/24", "192.168.20.0/28", "192.168.20.1", "192.168.20.15"},
		{"192.168.20.0/24", "192.168.20.64/28", "192.168.20.64", "192.168.20.79"},
		{"192.168.20.0/24", "192.168.20.9/32", "192.168.20.9", "192.168.20.9"},
		{"192.168.20.0/24", "10.9.0.0/24", "10.9.0.0", "10.9.0.255"},
	} {
		c := cluster.Cluster{Network: cluster.Network{LAN: netip.MustParsePrefix(tt.lan), LoadBalancerPool: netip.MustParsePrefix(tt.pool)}}
		spec, _ := ciliumvalues.Objects(c)[0]["spec"].(map[string]any)
		blocks, _ := spec["blocks"].([]any)
		block, _ := blocks[0].(map[string]any)
		if len(blocks) != 1 || block["start"] != tt.first || block["stop"] != tt.last {
			t.Errorf("%s in %s: %v", tt.pool, tt.lan, blocks)
		}
	}
}

// Every name that a node's NIC can have is announced on, whatever the firmware calls
// it today (pitfall 22), and none that Cilium or a tunnel makes.
func TestInterfaces(t *testing.T) {
	plain, tagged := load(t, "dev"), load(t, "prod")
	for _, name := range []string{"enp1s0", "eno1", "ens3", "enx48210b6e11a1", "enP2p1s0", "eth0", "end0"} {
		if !ciliumvalues.Announces(plain, name) || ciliumvalues.Announces(tagged, name) {
			t.Errorf("%s: %v with plain interfaces, %v on VLANs only", name, ciliumvalues.Announces(plain, name), ciliumvalues.Announces(tagged, name))
		}
	}
	if !ciliumvalues.Announces(tagged, "nic0v20") || ciliumvalues.Announces(tagged, "nic0v200") || ciliumvalues.Announces(plain, "nic0v20") {
		t.Error("VLAN 20 is not told apart")
	}
	for _, name := range []string{"lo", "wg0", "cilium_host", "lxc1a2b", "docker0", "virbr0"} {
		if ciliumvalues.Announces(plain, name) || ciliumvalues.Announces(tagged, name) {
			t.Errorf("announced on %s", name)
		}
	}
	mixed := plain
	mixed.Nodes = slices.Concat(plain.Nodes, tagged.Nodes)
	if got := ciliumvalues.Interfaces(mixed); !slices.Equal(got, []string{"^en", "^eth", "^nic[0-9]+v20$"}) {
		t.Errorf("mixed: %v", got)
	}
}
