package k3sconf_test

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/k3sconf"
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

func render(t *testing.T, c cluster.Cluster, n cluster.Node, j k3sconf.Join) []byte {
	t.Helper()
	doc, err := k3sconf.Render(c, n, j)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Three servers of every profile: the first starts the cluster, the others join,
// and all agree byte for byte in what is the cluster's.
func TestThreeServers(t *testing.T) {
	for _, name := range []string{"lab", "dev", "prod"} {
		t.Run(name, func(t *testing.T) {
			c := load(t, name)
			first := k3sconf.URL(c.Nodes[0].Address())
			joins := []k3sconf.Join{{Init: true}, {Server: first}, {Server: first}}
			configs := map[string][]byte{}
			for i, n := range c.Nodes {
				doc := render(t, c, n, joins[i])
				golden(t, name+"-"+n.Name+".yaml", doc)
				configs[n.Name] = doc
				if got := bytes.Contains(doc, []byte("\ncluster-init: true\n")); got != (i == 0) {
					t.Errorf("%s: cluster-init is %v", n.Name, got)
				}
				if !bytes.Equal(k3sconf.ClusterFlags(doc), k3sconf.ClusterFlags(configs["n1"])) {
					t.Errorf("%s and n1 do not agree", n.Name)
				}
			}
			if err := k3sconf.Agree(configs); err != nil {
				t.Error(err)
			}
		})
	}
}

// A first node that was wiped joins the others like any node (pitfall 1).
func TestWipedFirstNodeJoins(t *testing.T) {
	c := load(t, "dev")
	doc := render(t, c, c.Nodes[0], k3sconf.Join{Server: k3sconf.URL(c.Nodes[2].Address())})
	golden(t, "dev-n1-again.yaml", doc)
	if bytes.Contains(doc, []byte("cluster-init")) || !bytes.Contains(doc, []byte(`server: "https://192.168.124.13:6443"`)) {
		t.Errorf("got\n%s", doc)
	}
}

func TestAgent(t *testing.T) {
	c := load(t, "dev")
	c.Nodes[2].Role = cluster.RoleAgent
	c.Registries = []cluster.Registry{{Name: "docker.io", Mirrors: []string{"https://mirror.example.org:5000"}}, {Name: "*", Mirrors: []string{"http://10.0.0.1"}}}
	tree, err := k3sconf.Files(c, c.Nodes[2], k3sconf.Join{Server: "https://192.168.124.11:6443"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for e := range tree.All() {
		if e.Mode.IsRegular() {
			names = append(names, e.Path+" "+e.Mode.String())
		}
	}
	if want := []string{"etc/rancher/k3s/config.yaml -rw-------", "etc/rancher/k3s/registries.yaml -rw-------", "etc/slipway/agent -rw-r--r--"}; !slices.Equal(names, want) {
		t.Errorf("files %q", names)
	}
	config, _ := tree.Lookup("etc/rancher/k3s/config.yaml")
	golden(t, "agent.yaml", config.Content)
	mirrors, _ := tree.Lookup("etc/rancher/k3s/registries.yaml")
	golden(t, "registries.yaml", mirrors.Content)
	for _, key := range []string{"cluster-cidr", "disable", "tls-san", "advertise-address"} {
		if bytes.Contains(config.Content, []byte("\n"+key)) {
			t.Errorf("an agent's configuration has %s", key)
		}
	}
}

// What a profile adds comes in once, also where Slipway has a value of its own.
func TestProfilesOwnKeys(t *testing.T) {
	c := load(t, "lab")
	c.K3s.Config = map[string]string{"etcd-snapshot-retention": "40", "kubelet-arg": "max-pods=200", "debug": "true"}
	doc := string(render(t, c, c.Nodes[0], k3sconf.Join{Init: true}))
	for _, line := range []string{"\netcd-snapshot-retention: \"40\"\n", "\nkubelet-arg: \"max-pods=200\"\n", "\ndebug: \"true\"\n"} {
		if strings.Count(doc, line) != 1 {
			t.Errorf("%q is in there %d times:\n%s", line, strings.Count(doc, line), doc)
		}
	}
	if strings.Count(doc, "etcd-snapshot-retention") != 1 {
		t.Errorf("a key is written twice:\n%s", doc)
	}
}

func TestJoinIsDecidedByTheCaller(t *testing.T) {
	c := load(t, "lab")
	agent := c.Nodes[1]
	agent.Role = cluster.RoleAgent
	for _, tt := range []struct {
		n    cluster.Node
		j    k3sconf.Join
		want string
	}{
		{c.Nodes[0], k3sconf.Join{}, "no server to join"},
		{c.Nodes[0], k3sconf.Join{Init: true, Server: "https://10.0.2.16:6443"}, "cannot both"},
		{agent, k3sconf.Join{Init: true}, "an agent cannot start a cluster"},
	} {
		if _, err := k3sconf.Render(c, tt.n, tt.j); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.j, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	c := load(t, "lab")
	dhcp := c.Nodes[1]
	dhcp.Interfaces = []cluster.Interface{{MAC: dhcp.Interfaces[0].MAC, DHCP: true}}
	c.Nodes[1] = dhcp
	if _, err := k3sconf.Render(c, c.Nodes[0], k3sconf.Join{Init: true}); err == nil || !strings.Contains(err.Error(), "node n2 has no address") {
		t.Errorf("got %v", err)
	}
	for found, want := range map[string]string{"": "not known", "10.0.3.4": "outside the LAN", "10.0.2.77": ""} {
		addresses := map[string]netip.Addr{}
		if found != "" {
			addresses["n2"] = netip.MustParseAddr(found)
		}
		settled, err := k3sconf.Addressed(c, addresses)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) || diag.HintOf(err) == "" {
				t.Errorf("%s: %v", found, err)
			}
			continue
		}
		if err != nil || settled.Nodes[1].Address().String() != found || c.Nodes[1].Address().IsValid() {
			t.Errorf("%s: %v, %v, and the profile has %v", found, settled.Nodes[1].Address(), err, c.Nodes[1].Address())
		}
		if doc := render(t, settled, settled.Nodes[1], k3sconf.Join{Init: true}); !bytes.Contains(doc, []byte(`node-ip: "10.0.2.77"`)) {
			t.Errorf("got\n%s", doc)
		}
	}
}

// Names that YAML takes for something else stay names (pitfall 19).
func TestNamesStayTexts(t *testing.T) {
	c := load(t, "lab")
	c.Nodes[0].Name, c.Nodes[1].Name, c.Nodes[2].Name = "no", "1234", "0123"
	doc := string(render(t, c, c.Nodes[0], k3sconf.Join{Init: true}))
	for _, line := range []string{`node-name: "no"`, `- "1234"`, `- "0123"`} {
		if !strings.Contains(doc, line) {
			t.Errorf("%s is not in\n%s", line, doc)
		}
	}
}
