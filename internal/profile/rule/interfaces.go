package rule

import (
	"fmt"
	"net/netip"

	"github.com/slipway/slipway/internal/cluster"
)

// macs keeps one interface per address and VLAN: the MAC is how a machine is
// recognised, on the wire and by cloud-init.
func macs(c *cluster.Cluster, report Report) {
	type use struct {
		mac  cluster.MAC
		vlan int
	}
	owner, uses := map[cluster.MAC]int{}, seen[use]{}
	eachInterface(c, func(node, _ int, path string, in *cluster.Interface) {
		if in.MAC == "" {
			return
		}
		if other, ok := owner[in.MAC]; ok && other != node {
			report(path+".mac", fmt.Sprintf("%s belongs to two nodes", in.MAC), "the first is "+nodePath(other))
			return
		}
		owner[in.MAC] = node
		if first, again := uses.again(use{in.MAC, in.VLAN}, path); again {
			report(path+".mac", fmt.Sprintf("%s is given twice", in.MAC), "the first is "+first+"; the same interface may stand in the list once for each VLAN")
		}
	})
}

// The bounds of MTU: RFC 8200 needs 1280 for IPv6, 9216 is what jumbo-frame switches carry.
const (
	minMTU  = 1280
	maxMTU  = 9216
	maxVLAN = 4094 // IEEE 802.1Q; 4095 is reserved
)

// interfaces checks what one interface says about itself.
func interfaces(c *cluster.Cluster, report Report) {
	eachInterface(c, func(_, _ int, path string, in *cluster.Interface) {
		switch {
		case in.DHCP && len(in.Addresses) > 0:
			report(path, "both dhcp and addresses", "an interface takes its address from DHCP, or has static ones")
		case !in.DHCP && len(in.Addresses) == 0:
			report(path, "neither dhcp: true nor addresses", "say where the address comes from; interfaces that are not used are left out")
		}
		if in.VLAN < 0 || in.VLAN > maxVLAN {
			report(path+".vlan", fmt.Sprintf("%d is no VLAN id", in.VLAN), "VLAN ids go from 1 to 4094; leave the key out for untagged")
		}
		if in.MTU != 0 && (in.MTU < minMTU || in.MTU > maxMTU) {
			report(path+".mtu", fmt.Sprintf("an MTU of %d", in.MTU), fmt.Sprintf("it goes from %d to %d; leave the key out for the driver's", minMTU, maxMTU))
		}
	})
}

// staticAddresses checks addresses against the LAN. A node's first interface
// carries its address in the cluster; a second one in the LAN would answer ARP
// for the first.
func staticAddresses(c *cluster.Cluster, report Report) {
	lan := c.Network.LAN
	if !lan.IsValid() {
		return
	}
	eachInterface(c, func(_, index int, path string, in *cluster.Interface) {
		for k, p := range in.Addresses {
			if !p.IsValid() {
				continue
			}
			at, a := fmt.Sprintf("%s.addresses[%d]", path, k), p.Addr()
			switch {
			case isEdge(p, a):
				report(at, fmt.Sprintf("%s is the network or broadcast address of %s", a, p.Masked()), "choose an address between the two")
			case index == 0 && k == 0 && !lan.Contains(a):
				report(at, fmt.Sprintf("%s is outside the LAN %s", a, lan), "the first address of a node's first interface is its address in the cluster; correct it or network.lan")
			case lan.Contains(a) && p.Bits() != lan.Bits():
				report(at, fmt.Sprintf("the prefix length /%d differs from the LAN's /%d", p.Bits(), lan.Bits()), fmt.Sprintf("write %s/%d", a, lan.Bits()))
			case index > 0 && lan.Contains(a):
				report(at, fmt.Sprintf("a second interface in the LAN %s", lan), "put the address on the node's first interface, or use another network here")
			}
		}
	})
}

// uniqueAddresses finds an address that two interfaces have.
func uniqueAddresses(c *cluster.Cluster, report Report) {
	used := seen[netip.Addr]{}
	eachInterface(c, func(_, _ int, path string, in *cluster.Interface) {
		for k, p := range in.Addresses {
			if !p.IsValid() {
				continue
			}
			at := fmt.Sprintf("%s.addresses[%d]", path, k)
			if first, again := used.again(p.Addr(), at); again {
				report(at, fmt.Sprintf("the address %s is given twice", p.Addr()), "the first is "+first)
			}
		}
	})
}

// nodeAddresses maps all static addresses to the names of their nodes.
func nodeAddresses(c *cluster.Cluster) map[netip.Addr]string {
	out := map[netip.Addr]string{}
	eachInterface(c, func(node, _ int, _ string, in *cluster.Interface) {
		for _, p := range in.Addresses {
			out[p.Addr()] = c.Nodes[node].Name
		}
	})
	return out
}
