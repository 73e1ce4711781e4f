package rule

import (
	"fmt"
	"net/netip"

	"github.com/slipway/slipway/internal/cluster"
)

// span is a named range of the profile.
type span struct {
	path, name string
	prefix     netip.Prefix
}

// spans lists the ranges that are given.
func spans(c *cluster.Cluster) []span {
	n := &c.Network
	all := []span{
		{"network.lan", "the LAN", n.LAN},
		{"network.podCIDR", "the pod range", n.PodCIDR},
		{"network.serviceCIDR", "the service range", n.ServiceCIDR},
		{"network.loadBalancerPool", "the load balancer pool", n.LoadBalancerPool},
	}
	for i, v := range n.VPN {
		for j, p := range v.AllowedIPs {
			all = append(all, span{fmt.Sprintf("network.vpn[%d].allowedIPs[%d]", i, j), "the network behind VPN " + v.Name, p})
		}
	}
	var given []span
	for _, s := range all {
		// All of the internet is a finding of its own, see vpnPeers.
		if s.prefix.IsValid() && s.prefix.Bits() > 0 {
			given = append(given, s)
		}
	}
	return given
}

// disjointRanges compares all ranges in pairs. A load balancer pool may lie in
// the LAN: that is where Cilium announces it by ARP. Packets to an address that
// is in two ranges go to the wrong one, and a node loses SSH or the API.
func disjointRanges(c *cluster.Cluster, report Report) {
	all := spans(c)
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !a.prefix.Overlaps(b.prefix) || poolInLAN(a, b) {
				continue
			}
			report(b.path, fmt.Sprintf("%s %s overlaps %s %s", b.name, b.prefix, a.name, a.prefix), "choose ranges without a common address; "+a.path+" has the other one")
		}
	}
}

func poolInLAN(a, b span) bool {
	return a.path == "network.lan" && b.path == "network.loadBalancerPool" && a.prefix.Bits() < b.prefix.Bits()
}

// families keeps the cluster on IPv4, which is what it is built and tested for.
func families(c *cluster.Cluster, report Report) {
	n := &c.Network
	for _, a := range []struct {
		path string
		addr netip.Addr
	}{
		{"network.lan", n.LAN.Addr()}, {"network.podCIDR", n.PodCIDR.Addr()}, {"network.serviceCIDR", n.ServiceCIDR.Addr()},
		{"network.loadBalancerPool", n.LoadBalancerPool.Addr()},
		{"network.gateway", n.Gateway}, {"network.apiVIP", n.APIVIP}, {"network.clusterDNS", n.ClusterDNS},
	} {
		if a.addr.Is6() {
			report(a.path, "IPv6 where the cluster needs IPv4", "interfaces, name servers and VPNs may have IPv6 addresses besides")
		}
	}
}

// reservedRanges refuses networks that hosts treat in their own way (RFC 6890).
func reservedRanges(c *cluster.Cluster, report Report) {
	reserved := []struct{ cidr, what string }{
		{"0.0.0.0/8", "this host"}, {"127.0.0.0/8", "the loopback"}, {"169.254.0.0/16", "link-local addresses"},
		{"224.0.0.0/4", "multicast"}, {"240.0.0.0/4", "reserved addresses"},
	}
	for _, s := range spans(c) {
		for _, r := range reserved {
			if s.prefix.Overlaps(netip.MustParsePrefix(r.cidr)) {
				report(s.path, fmt.Sprintf("%s %s overlaps %s, which is for %s", s.name, s.prefix, r.cidr, r.what), "choose a private network (RFC 1918)")
				break
			}
		}
	}
}

// serviceRange applies the limits of kube-apiserver (at most 20 bits of host
// part) and leaves room for more than a handful of Services.
func serviceRange(c *cluster.Cluster, report Report) {
	s := c.Network.ServiceCIDR
	if s.IsValid() && s.Addr().Is4() && (s.Bits() < 12 || s.Bits() > 24) {
		report("network.serviceCIDR", fmt.Sprintf("a service range of /%d; Kubernetes takes /12 to /24 here", s.Bits()), "a /16 is usual")
	}
}

// nodeMask is the size of the share of the pod range that each node gets (Cilium's cluster-pool).
const nodeMask = 24

func podRange(c *cluster.Cluster, report Report) {
	p := c.Network.PodCIDR
	if !p.IsValid() || !p.Addr().Is4() {
		return
	}
	if room := 1 << max(nodeMask-p.Bits(), 0); p.Bits() > nodeMask || room < len(c.Nodes) {
		report("network.podCIDR", fmt.Sprintf("a pod range of /%d is too small for %s: each gets a /%d", p.Bits(), count(len(c.Nodes), "node"), nodeMask), "a /16 has room for 256 nodes")
	}
}

// clusterDNS keeps the address away from the first of the range, which is the
// Service "kubernetes".
func clusterDNS(c *cluster.Cluster, report Report) {
	a, s := c.Network.ClusterDNS, c.Network.ServiceCIDR
	if !a.IsValid() || !s.IsValid() || a.Is4() != s.Addr().Is4() {
		return
	}
	tenth := s.Addr()
	for range 10 {
		tenth = tenth.Next()
	}
	switch hint := "the tenth address is usual: " + tenth.String(); {
	case !s.Contains(a):
		report("network.clusterDNS", fmt.Sprintf("%s is outside the service range %s", a, s), hint)
	case a == s.Addr().Next():
		report("network.clusterDNS", fmt.Sprintf("%s is the address of the Service kubernetes, the first of the range", a), hint)
	case isEdge(s, a):
		report("network.clusterDNS", fmt.Sprintf("%s is the network or broadcast address of %s", a, s), hint)
	}
}

// domains keeps cluster names and host names apart: a resolver asks one place only.
func domains(c *cluster.Cluster, report Report) {
	if c.Network.DNSZone != "" && c.Network.DNSZone == c.Network.ClusterDomain {
		report("network.dnsZone", "the DNS zone is the cluster domain, too", "CoreDNS answers for "+c.Network.ClusterDomain+" alone; choose another zone")
	}
}

// isEdge reports whether an IPv4 address is the first or last of its network,
// where these have a meaning of their own (not in /31 and /32, RFC 3021).
func isEdge(p netip.Prefix, a netip.Addr) bool {
	if !a.Is4() || !p.Contains(a) || p.Bits() > 30 {
		return false
	}
	return a == p.Masked().Addr() || a == lastOf(p)
}

// lastOf is the broadcast address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}
