// Package k3sconf decides the configuration of k3s on a node: what is the same on
// all servers, what is the node's own, and what the drop-ins that an operator put
// beside it may change. It is pure; secrets are named by their file, never held.
//
// Sources of its rules are k3s's documentation of the server and agent commands, of
// its configuration files, and of private registries.
package k3sconf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// Paths on a node. Below /etc only /etc/rancher and /etc/slipway outlive a restart.
const (
	ConfigPath     = "/etc/rancher/k3s/config.yaml"
	DropInDir      = "/etc/rancher/k3s/config.yaml.d"
	RegistriesPath = "/etc/rancher/k3s/registries.yaml"
	TokenPath      = "/etc/rancher/k3s/token" // mode 0600, the token and nothing else
	AgentMark      = "/etc/slipway/agent"     // where it exists, k3s runs as an agent
	KubeconfigPath = "/etc/rancher/k3s/k3s.yaml"
	DataDir        = "/var/lib/rancher/k3s"
)

// Ports on which the API is reached. The first is the API server's own; the second
// is k3s's load balancer on the loopback of every node, servers and agents.
const (
	APIPort      = 6443
	BalancerPort = 6444
)

// Unit is the systemd unit that runs k3s in a role.
func Unit(r cluster.Role) string {
	if r == cluster.RoleAgent {
		return "k3s-agent.service"
	}
	return "k3s.service"
}

// URL is where a server is joined.
func URL(a netip.Addr) string {
	return fmt.Sprintf("https://%s", netip.AddrPortFrom(a, APIPort))
}

// Join says how a node comes into the cluster. Exactly one of the two is given.
type Join struct {
	// Init starts a new cluster. The right to it exists for one run, after every
	// node has been asked and none knows a cluster.
	Init bool
	// Server is the URL of a living server, as URL makes it.
	Server string
}

func (j Join) check(n cluster.Node) error {
	switch {
	case j.Init && j.Server != "":
		return errors.New("a node cannot both start a cluster and join one")
	case j.Init && n.Role != cluster.RoleServer:
		return errors.New("an agent cannot start a cluster")
	case !j.Init && j.Server == "":
		return errors.New("no server to join: a node starts a cluster only when told to, whatever its place in the profile")
	}
	return nil
}

// Render decides config.yaml of a node. Every node needs an address, see Addressed.
func Render(c cluster.Cluster, n cluster.Node, j Join) ([]byte, error) {
	doc, err := render(c, n, j)
	if err != nil {
		return nil, fmt.Errorf("k3s configuration of node %s: %w", n.Name, err)
	}
	return doc, nil
}

func render(c cluster.Cluster, n cluster.Node, j Join) ([]byte, error) {
	if err := j.check(n); err != nil {
		return nil, err
	}
	for _, m := range c.Nodes {
		if !m.Address().IsValid() {
			return nil, fmt.Errorf("node %s has no address", m.Name)
		}
	}
	var doc document
	if n.Role == cluster.RoleServer {
		doc.clusterWide(c)
	}
	doc.own(n, j)
	for _, key := range slices.Sorted(maps.Keys(c.K3s.Config)) {
		doc.set(key, c.K3s.Config[key])
	}
	return yamlform.Marshal(header, doc.node())
}

const header = "# Written by Slipway; it is written again whenever it differs from the profile.\n" +
	"# What is yours belongs into " + DropInDir + ".\n"

// Servers of one cluster must agree on these keys. k3s itself compares only some
// of them, and only once a server tries to join. What a profile adds in k3s.config
// reaches all nodes alike.
func (d *document) clusterWide(c cluster.Cluster) {
	n := c.Network
	d.set("flannel-backend", "none")
	d.set("disable-kube-proxy", true)
	d.set("disable-network-policy", true)
	d.set("disable-helm-controller", true)
	d.set("disable", []string{"traefik", "servicelb", "local-storage"})
	d.set("cluster-cidr", n.PodCIDR.String())
	d.set("service-cidr", n.ServiceCIDR.String())
	d.set("cluster-dns", n.ClusterDNS.String())
	d.set("cluster-domain", n.ClusterDomain)
	d.set("secrets-encryption", true)
	d.set("tls-san", names(c))
	d.set("etcd-snapshot-schedule-cron", "0 */6 * * *")
	d.set("etcd-snapshot-retention", 12)
	d.set("etcd-snapshot-compress", true)
	d.set("write-kubeconfig-mode", "0600")
}

// own are the keys of one node. Its address is explicit: k3s would take the one of
// the default route, and an etcd member cannot change it later.
func (d *document) own(n cluster.Node, j Join) {
	d.set("node-name", n.Name)
	d.set("node-ip", n.Address().String())
	if n.Role == cluster.RoleServer {
		d.set("advertise-address", n.Address().String())
	}
	d.set("protect-kernel-defaults", true)
	d.set("token-file", TokenPath)
	if j.Init {
		d.set("cluster-init", true)
		return
	}
	d.set("server", j.Server)
}

// names are what the API is called by: the virtual address, then every node by
// address and name, in the order of the profile.
func names(c cluster.Cluster) []string {
	var out []string
	if c.Network.APIVIP.IsValid() {
		out = append(out, c.Network.APIVIP.String())
	}
	for _, n := range c.Nodes {
		out = append(out, n.Address().String(), n.Name)
		if c.Network.DNSZone != "" {
			out = append(out, n.Name+"."+c.Network.DNSZone)
		}
	}
	return out
}

// Addressed is the cluster with an address for every node: found has, by name, the
// addresses of nodes that take theirs from DHCP. One that the profile gives wins.
func Addressed(c cluster.Cluster, found map[string]netip.Addr) (cluster.Cluster, error) {
	c.Nodes = slices.Clone(c.Nodes)
	for i, n := range c.Nodes {
		if n.Address().IsValid() {
			continue
		}
		a := found[n.Name]
		switch {
		case len(n.Interfaces) == 0 || !a.IsValid():
			return c, diag.WithHint(fmt.Errorf("the address of node %s is not known", n.Name), "it takes its address from DHCP and has not been reached; give it a static one in the profile, or start it")
		case !c.Network.LAN.Contains(a):
			return c, diag.WithHint(fmt.Errorf("node %s has the address %s, outside the LAN %s", n.Name, a, c.Network.LAN), "correct network.lan, or what DHCP gives")
		}
		c.Nodes[i].Interfaces = slices.Clone(n.Interfaces)
		c.Nodes[i].Interfaces[0].Addresses = []netip.Prefix{netip.PrefixFrom(a, c.Network.LAN.Bits())}
	}
	return c, nil
}

// Files are everything of k3s that bootstrap writes to a node, except the token.
func Files(c cluster.Cluster, n cluster.Node, j Join) (fstree.Tree, error) {
	config, err := Render(c, n, j)
	if err != nil {
		return fstree.Tree{}, err
	}
	entries := []fstree.Entry{file(ConfigPath, 0o600, config)}
	mirrors, err := Registries(c)
	if err != nil {
		return fstree.Tree{}, err
	}
	if mirrors != nil {
		entries = append(entries, file(RegistriesPath, 0o600, mirrors))
	}
	if n.Role == cluster.RoleAgent {
		entries = append(entries, file(AgentMark, 0o644, []byte("k3s runs as an agent on this node\n")))
	}
	return fstree.New(entries...)
}

func file(path string, perm fs.FileMode, content []byte) fstree.Entry {
	return fstree.File(path[1:], perm, content)
}

// Registries decides registries.yaml, the same on all nodes; nil when the profile
// has no mirrors. Credentials have no place in it: they come from the secrets of an
// environment, if at all.
func Registries(c cluster.Cluster) ([]byte, error) {
	if len(c.Registries) == 0 {
		return nil, nil
	}
	type mirror struct {
		Endpoint []string `yaml:"endpoint"`
	}
	mirrors := map[string]mirror{}
	for _, r := range c.Registries {
		mirrors[r.Name] = mirror{r.Mirrors}
	}
	return yamlform.Marshal("# Written by Slipway from the profile's registries.\n", map[string]any{"mirrors": mirrors})
}

// document is a configuration file: keys in the order in which they were first set.
type document struct{ content []*yaml.Node }

func (d *document) set(key string, value any) {
	var v yaml.Node
	if err := v.Encode(value); err != nil {
		panic(err) // texts, truth values, numbers and lists of texts always encode
	}
	for i := 0; i < len(d.content); i += 2 {
		if d.content[i].Value == key {
			d.content[i+1] = &v
			return
		}
	}
	d.content = append(d.content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &v)
}

func (d *document) node() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: d.content}
}
