package seed

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profilefile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func seedOf(t *testing.T, c cluster.Cluster, node int) Documents {
	t.Helper()
	docs, err := For(c, c.Nodes[node])
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestGolden(t *testing.T) {
	for name, docs := range goldenSeeds(t) {
		tree, err := docs.Tree()
		if err != nil {
			t.Fatal(err)
		}
		for e := range tree.All() {
			path := filepath.Join("testdata", name, e.Path)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, e.Content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(e.Content, want) {
				t.Errorf("%s differs (go test -update rewrites it):\n%s", path, e.Content)
			}
		}
	}
}

// goldenSeeds are the seeds of the real lab and of synthetic clusters.
func goldenSeeds(t *testing.T) map[string]Documents {
	t.Helper()
	profile := profileOf(t, "lab")
	return map[string]Documents{
		"lab-n1":    seedOf(t, profile, 0),
		"lab-n3":    seedOf(t, profile, 2),
		"dhcp-n1":   seedOf(t, lab(), 0),
		"rack-no":   seedOf(t, rack(), 0),
		"rack-0123": seedOf(t, rack(), 1),
	}
}

func profileOf(t *testing.T, name string) cluster.Cluster {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "profiles", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Cluster
}

func TestEveryProfileHasSeeds(t *testing.T) {
	for _, name := range []string{"lab", "dev", "prod"} {
		c := profileOf(t, name)
		seen := map[string]string{}
		for i, node := range c.Nodes {
			id := seedOf(t, c, i).InstanceID
			if seen[id] != "" {
				t.Errorf("%s: %s and %s are the same instance", name, node.Name, seen[id])
			}
			seen[id] = node.Name
		}
	}
}

func TestInstanceIDFollowsContent(t *testing.T) {
	before := seedOf(t, lab(), 0)
	if again := seedOf(t, lab(), 0); again.InstanceID != before.InstanceID {
		t.Error("the same seed is another instance")
	}
	for name, change := range map[string]func(*cluster.Cluster){
		"key":     func(c *cluster.Cluster) { c.Access.Users[0].Keys = []string{"ssh-ed25519 other"} },
		"network": func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].MTU = 9000 },
		"sysctl":  func(c *cluster.Cluster) { c.System.Sysctls["vm.swappiness"] = "0" },
	} {
		c := lab()
		change(&c)
		if seedOf(t, c, 0).InstanceID == before.InstanceID {
			t.Errorf("a changed %s is the same instance", name)
		}
	}
}

func TestNoSecrets(t *testing.T) {
	c := rack()
	for i := range c.Nodes[:2] {
		tree, err := seedOf(t, c, i).Tree()
		if err != nil {
			t.Fatal(err)
		}
		for e := range tree.All() {
			if bytes.Contains(e.Content, []byte(c.Network.VPN[0].PrivateKeyRef)) {
				t.Errorf("%s mentions the VPN's key", e.Path)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(*cluster.Cluster){
		"private key":          func(c *cluster.Cluster) { c.Access.Users[0].Keys = []string{"-----BEGIN OPENSSH PRIVATE KEY-----"} },
		"user or password":     func(c *cluster.Cluster) { c.Proxy.HTTPS = "http://me:secret@proxy:1" },
		"not one line":         func(c *cluster.Cluster) { c.System.Modules = []string{"a\nb"} },
		"no network interface": func(c *cluster.Cluster) { c.Nodes[0].Interfaces = nil },
		"listed twice without": func(c *cluster.Cluster) { i := c.Nodes[0].Interfaces; c.Nodes[0].Interfaces = append(i, i[0]) },
		"VLAN 5 listed twice": func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces = []cluster.Interface{{MAC: "m", VLAN: 5}, {MAC: "m", VLAN: 5}}
		},
		"in none of the node's":   func(c *cluster.Cluster) { *c = rack(); c.Nodes[0] = c.Nodes[2] },
		"user-data has":           func(c *cluster.Cluster) { c.Access.Users[0].Keys = []string{strings.Repeat("k", MaxDocument)} },
		"seed of node n1: the no": func(c *cluster.Cluster) { c.Nodes[0].Interfaces = nil },
	} {
		c := lab()
		change(&c)
		if _, err := For(c, c.Nodes[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestUserIDsDoNotDependOnOrder(t *testing.T) {
	a, b := cluster.User{Name: "a"}, cluster.User{Name: "b"}
	one, two := userIDs([]cluster.User{a, b}), userIDs([]cluster.User{b, a})
	if one["a"] != two["a"] || one["b"] != two["b"] || one["a"] == one["b"] {
		t.Errorf("%v and %v", one, two)
	}
	var many []cluster.User
	for i := range 2000 { // enough for many names to meet at one number
		many = append(many, cluster.User{Name: "u" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50)})
	}
	seen := map[int]string{}
	for name, id := range userIDs(many) {
		if other, twice := seen[id]; twice || id < 2000 || id > 51999 {
			t.Fatalf("%s has %d, as has %q", name, id, other)
		}
		seen[id] = name
	}
}

func TestIPv6LAN(t *testing.T) {
	c := lab()
	c.Network.LAN = netip.MustParsePrefix("fd00::/64")
	plan, err := networkConfig(c.Network, cluster.Time{Servers: []string{"t"}}, c.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	nic := plan.Network.Ethernets["nic0"]
	if !nic.AcceptRA || !nic.DHCP6 || nic.DHCP4 || nic.DHCP4Overrides != nil {
		t.Errorf("got %+v", nic)
	}
}
