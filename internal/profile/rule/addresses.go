package rule

import (
	"fmt"
	"net/netip"

	"github.com/slipway/slipway/internal/cluster"
)

// gateway checks that the next hop can be reached and is nobody of ours.
func gateway(c *cluster.Cluster, report Report) {
	if g := c.Network.Gateway; g.IsValid() {
		inLAN(c, "network.gateway", "the gateway", g, report)
	}
}

// virtualAddress checks the address that moves between the servers.
func virtualAddress(c *cluster.Cluster, report Report) {
	vip := c.Network.APIVIP
	if !vip.IsValid() {
		return
	}
	inLAN(c, "network.apiVIP", "the virtual address", vip, report)
	if vip == c.Network.Gateway {
		report("network.apiVIP", fmt.Sprintf("%s is the gateway", vip), "choose a free address of the LAN")
	}
	for _, dns := range c.Network.DNS {
		if vip == dns && vip != c.Network.Gateway {
			report("network.apiVIP", fmt.Sprintf("%s is a name server", vip), "choose a free address of the LAN")
		}
	}
}

// inLAN reports an address that is outside the LAN, at its edge, or a node's.
func inLAN(c *cluster.Cluster, path, name string, a netip.Addr, report Report) {
	lan := c.Network.LAN
	switch {
	case !lan.IsValid() || a.Is4() != lan.Addr().Is4():
	case !lan.Contains(a):
		report(path, fmt.Sprintf("%s %s is outside the LAN %s", name, a, lan), "correct it or network.lan")
	case isEdge(lan, a):
		report(path, fmt.Sprintf("%s %s is the network or broadcast address of the LAN %s", name, a, lan), "choose an address between the two")
	}
	if node, taken := nodeAddresses(c)[a]; taken {
		report(path, fmt.Sprintf("%s %s is the address of node %s", name, a, node), "one of the two needs another address")
	}
}

// loadBalancers keeps addresses that have an owner out of the pool: Cilium would
// answer for them.
func loadBalancers(c *cluster.Cluster, report Report) {
	pool, n := c.Network.LoadBalancerPool, &c.Network
	if !pool.IsValid() {
		return
	}
	taken := func(what string, a netip.Addr) {
		if a.IsValid() && pool.Contains(a) {
			report("network.loadBalancerPool", fmt.Sprintf("the pool %s holds %s, %s", pool, a, what), "choose a part of the LAN that nothing else uses")
		}
	}
	taken("the gateway", n.Gateway)
	taken("the virtual address of the API", n.APIVIP)
	for _, a := range n.DNS {
		if a != n.Gateway {
			taken("a name server", a)
		}
	}
	eachInterface(c, func(node, _ int, _ string, in *cluster.Interface) {
		for _, p := range in.Addresses {
			if p.IsValid() {
				taken("the address of node "+c.Nodes[node].Name, p.Addr())
			}
		}
	})
}

// outsideRanges finds addresses and networks beyond the LAN that pods or
// Services would hide: name servers, time servers, other interfaces.
func outsideRanges(c *cluster.Cluster, report Report) {
	hidden := func(path, what string, p netip.Prefix) {
		for _, s := range spans(c) {
			if (s.path == "network.podCIDR" || s.path == "network.serviceCIDR") && p.IsValid() && s.prefix.Overlaps(p) {
				report(path, fmt.Sprintf("%s %s is in %s %s", what, p, s.name, s.prefix), "the cluster would take packets for it; change one of the two")
			}
		}
	}
	for i, a := range c.Network.DNS {
		hidden(fmt.Sprintf("network.dns[%d]", i), "the name server", netip.PrefixFrom(a, a.BitLen()))
	}
	for i, text := range c.Time.Servers {
		if a, err := netip.ParseAddr(text); err == nil {
			hidden(fmt.Sprintf("time.servers[%d]", i), "the time server", netip.PrefixFrom(a, a.BitLen()))
		}
	}
	eachInterface(c, func(_, index int, path string, in *cluster.Interface) {
		for k, p := range in.Addresses {
			if p.IsValid() && !(index == 0 && k == 0) && !c.Network.LAN.Contains(p.Addr()) {
				hidden(fmt.Sprintf("%s.addresses[%d]", path, k), "the network of", p)
			}
		}
	})
}
