package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/cluster"
)

// profile judges the profile alone.
func (l *list) profile(c cluster.Cluster) {
	if c.Status == cluster.StatusDesignOnly {
		l.add("", "the profile is design-only: nothing may be changed with it")("set status: active in the profile, in git, when it is meant")
	}
	all := ranges(c)
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.prefix.Overlaps(b.prefix) && !(a.pool || b.pool) {
				l.add("", "%s %s overlaps %s %s", b.name, b.prefix, a.name, a.prefix)("choose ranges without a common address")
			}
		}
	}
}

// span is a range of the profile. The load balancer's pool may lie in the LAN, where
// its addresses are announced.
type span struct {
	name   string
	prefix netip.Prefix
	pool   bool
}

func ranges(c cluster.Cluster) []span {
	n := c.Network
	poolInLAN := n.LAN.Overlaps(n.LoadBalancerPool) && n.LAN.Bits() < n.LoadBalancerPool.Bits()
	all := []span{
		{"the LAN", n.LAN, false}, {"the pod range", n.PodCIDR, false}, {"the service range", n.ServiceCIDR, false},
		{"the load balancer pool", n.LoadBalancerPool, poolInLAN},
	}
	return slices.DeleteFunc(all, func(s span) bool { return !s.prefix.IsValid() })
}

// addresses wants each address of the profile on the card that the profile names,
// and the one that the cluster knows the node by. Certificates and members of etcd
// are made for an address and cannot change it.
func (l *list) addresses(in Input, n cluster.Node, f facts.Facts) {
	for _, want := range n.Interfaces {
		for _, p := range want.Addresses {
			on, err := f.On(p.Addr())
			switch {
			case err != nil:
				l.add(n.Name, "it has not the address %s of the profile; it has %s", p.Addr(), all(f))("correct the profile, or write the seed again and restart the node")
			case !strings.EqualFold(on.MAC, string(want.MAC)):
				l.add(n.Name, "the address %s is on %s (%s), the profile has it on %s", p.Addr(), on.Name, on.MAC, want.MAC)("correct the MAC in the profile, or the cables")
			}
		}
	}
	lan := slices.DeleteFunc(addresses(f), func(a netip.Addr) bool { return !in.Cluster.Network.LAN.Contains(a) })
	if len(lan) == 0 {
		l.add(n.Name, "it has no address in the LAN %s; it has %s", in.Cluster.Network.LAN, all(f))("correct network.lan, or what DHCP gives")
		return
	}
	l.moved(in.Recorded, n, f)
}

// moved compares with what the ledger knows: DHCP may have given another address.
func (l *list) moved(recorded *identity.Cluster, n cluster.Node, f facts.Facts) {
	if recorded == nil || !f.K3s.Knows() && !f.K3s.Joined {
		return // a node that is installed anew may move
	}
	i := slices.IndexFunc(recorded.Nodes, func(r identity.Node) bool { return r.Name == n.Name })
	if i < 0 || len(recorded.Nodes[i].Addresses) == 0 {
		return
	}
	known := recorded.Nodes[i].Addresses
	for _, a := range addresses(f) {
		if slices.Contains(known, a.String()) {
			return
		}
	}
	l.add(n.Name, "the cluster knows it as %s, and it has %s", strings.Join(known, ", "), all(f))("give it back its address (a static one, or a lease for its MAC), or rebuild it: a member of etcd cannot move")
}

// addresses are all that are not link-local.
func addresses(f facts.Facts) []netip.Addr {
	var out []netip.Addr
	for _, i := range f.Interfaces {
		for _, text := range i.Addresses {
			if p, err := netip.ParsePrefix(text); err == nil && !p.Addr().IsLinkLocalUnicast() {
				out = append(out, p.Addr())
			}
		}
	}
	return out
}

func all(f facts.Facts) string {
	var out []string
	for _, a := range addresses(f) {
		out = append(out, a.String())
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// clusterInterfaces are those that Cilium and containers make.
var clusterInterfaces = []string{"cilium", "lxc", "cni", "veth", "kube", "flannel"}

// routes finds networks of the node that the cluster would take over: traffic to them
// would go to pods, and with it perhaps our own connection.
func (l *list) routes(c cluster.Cluster, n cluster.Node, f facts.Facts) {
	said := map[string]bool{}
	for _, r := range f.Routes {
		if r.Destination.Bits() == 0 || ofCluster(r.Interface) {
			continue
		}
		for _, s := range ranges(c) {
			if s.name == "the LAN" || s.pool || !s.prefix.Overlaps(r.Destination) {
				continue
			}
			text := fmt.Sprintf("it has a route to %s by %s, which overlaps %s %s", r.Destination, r.Interface, s.name, s.prefix)
			if !said[text] {
				said[text] = true
				l.add(n.Name, "%s", text)("choose another range in the profile, or take the node out of that network")
			}
		}
	}
}

func ofCluster(name string) bool {
	return slices.ContainsFunc(clusterInterfaces, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
