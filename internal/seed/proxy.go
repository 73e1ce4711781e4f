package seed

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// proxy is the environment file that k3s's own unit reads ("/etc/default/%N");
// containerd and its image pulls run inside of it and inherit the environment.
func proxy(c cluster.Cluster, node cluster.Node) file {
	unit := "k3s"
	if node.Role == cluster.RoleAgent {
		unit = "k3s-agent"
	}
	var out []string
	if c.Proxy.HTTP != "" {
		out = append(out, "HTTP_PROXY="+quoted(c.Proxy.HTTP))
	}
	if c.Proxy.HTTPS != "" {
		out = append(out, "HTTPS_PROXY="+quoted(c.Proxy.HTTPS))
	}
	if len(out) > 0 {
		out = append(out, "NO_PROXY="+quoted(strings.Join(noProxy(c), ",")))
	}
	return readable("/etc/default/"+unit, lines(out))
}

// noProxy lists what is always reached directly: this machine, the cluster's own
// ranges and names, and its nodes, also those outside of the LAN. A request to
// the API server or to a pod must never leave through a proxy.
func noProxy(c cluster.Cluster) []string {
	n := c.Network
	direct := []string{"localhost", "127.0.0.0/8", "::1"}
	for _, p := range []netip.Prefix{n.LAN, n.PodCIDR, n.ServiceCIDR, n.LoadBalancerPool} {
		if p.IsValid() {
			direct = append(direct, p.String())
		}
	}
	if n.APIVIP.IsValid() {
		direct = append(direct, n.APIVIP.String())
	}
	direct = append(direct, ".svc")
	for _, domain := range []string{n.ClusterDomain, n.DNSZone} {
		if domain != "" {
			direct = append(direct, "."+domain)
		}
	}
	for _, node := range c.Nodes {
		direct = append(direct, node.Name)
		for _, i := range node.Interfaces {
			for _, a := range i.Addresses {
				if !n.LAN.IsValid() || !n.LAN.Contains(a.Addr()) {
					direct = append(direct, a.Addr().String())
				}
			}
		}
	}
	return unique(append(direct, c.Proxy.NoProxy...))
}

func unique(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// quoted is a value for a systemd environment file, in double quotes
// (systemd.exec(5), EnvironmentFile=).
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(s) + `"`
}
