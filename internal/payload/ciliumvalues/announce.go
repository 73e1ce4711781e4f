package ciliumvalues

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"github.com/slipway/slipway/internal/cluster"
)

// objectName is the name of the pool and of the policy.
const objectName = "lan"

// Objects are what Cilium gives addresses to Services of type LoadBalancer by: the
// pool, and the policy that answers ARP for it. There are none without a pool. The
// API server knows their kinds once Cilium's operator has run.
func Objects(c cluster.Cluster) []map[string]any {
	pool := c.Network.LoadBalancerPool
	if !pool.IsValid() {
		return nil
	}
	first, last := usable(pool, c.Network.LAN)
	patterns := []any{}
	for _, p := range Interfaces(c) {
		patterns = append(patterns, p)
	}
	return []map[string]any{
		{
			"apiVersion": "cilium.io/v2", "kind": "CiliumLoadBalancerIPPool",
			"metadata": map[string]any{"name": objectName},
			"spec":     map[string]any{"blocks": []any{map[string]any{"start": first.String(), "stop": last.String()}}},
		},
		{
			"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumL2AnnouncementPolicy",
			"metadata": map[string]any{"name": objectName},
			"spec":     map[string]any{"loadBalancerIPs": true, "externalIPs": false, "interfaces": patterns},
		},
	}
}

// usable is the pool without the LAN's network and broadcast addresses, which no
// Service may have: a pool at the end of the LAN holds the latter.
func usable(pool, lan netip.Prefix) (first, last netip.Addr) {
	first, last = pool.Masked().Addr(), lastOf(pool)
	if lan.IsValid() && first == lan.Masked().Addr() && first != last {
		first = first.Next()
	}
	if lan.IsValid() && last == lastOf(lan) && first != last {
		last = last.Prev()
	}
	return first, last
}

// lastOf is the last address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}

// Interfaces are regular expressions for the interfaces that carry the nodes'
// addresses. The names of NICs change with firmware and slots, so none is named:
// systemd calls NICs en… (by slot or MAC) or eth…, and a VLAN has the name that the
// seed gives it, its NIC's number and its own.
func Interfaces(c cluster.Cluster) []string {
	var out []string
	for _, n := range c.Nodes {
		if len(n.Interfaces) == 0 {
			continue
		}
		if vlan := n.Interfaces[0].VLAN; vlan != 0 {
			out = append(out, fmt.Sprintf("^nic[0-9]+v%d$", vlan))
			continue
		}
		out = append(out, "^en", "^eth")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Announces reports whether an interface of this name is among those that
// Interfaces describes: the one that carries a node's address must be.
func Announces(c cluster.Cluster, name string) bool {
	return slices.ContainsFunc(Interfaces(c), func(pattern string) bool {
		matched, err := regexp.MatchString(pattern, name)
		return err == nil && matched
	})
}
