package seed

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/slipway/slipway/internal/cluster"
)

// netDocument is a network-config in version 2, netplan's language.
type netDocument struct {
	Network netplan `yaml:"network"`
}

type netplan struct {
	Version   int              `yaml:"version"`
	Renderer  string           `yaml:"renderer"`
	Ethernets map[string]*link `yaml:"ethernets"`
	VLANs     map[string]*link `yaml:"vlans,omitempty"`
}

// link is an Ethernet or VLAN interface. There is no set-name: renaming races
// with udev, and the names of NICs change with firmware and slots anyway.
type link struct {
	Match          *match      `yaml:"match,omitempty"`
	ID             int         `yaml:"id,omitempty"`
	Link           string      `yaml:"link,omitempty"`
	MTU            int         `yaml:"mtu,omitempty"`
	Optional       bool        `yaml:"optional"`
	DHCP4          bool        `yaml:"dhcp4"`
	DHCP6          bool        `yaml:"dhcp6"`
	DHCPIdentifier string      `yaml:"dhcp-identifier,omitempty"`
	DHCP4Overrides *overrides  `yaml:"dhcp4-overrides,omitempty"`
	AcceptRA       bool        `yaml:"accept-ra"`
	LinkLocal      *[]string   `yaml:"link-local,omitempty"`
	Addresses      []string    `yaml:"addresses,omitempty"`
	Routes         []route     `yaml:"routes,omitempty"`
	Nameservers    *nameserver `yaml:"nameservers,omitempty"`
}

type match struct {
	MAC string `yaml:"macaddress"`
}

type overrides struct {
	UseNTP bool `yaml:"use-ntp"`
}

type route struct {
	To  string `yaml:"to"`
	Via string `yaml:"via"`
}

// nameserver has no search domain: pods inherit it from the node, and with five
// dots' worth of search list a wildcard in that zone swallows outside names.
type nameserver struct {
	Addresses []string `yaml:"addresses"`
}

// networkConfig configures the listed interfaces and no other. Networkd leaves
// an interface alone that no file mentions, and waits for none of them.
func networkConfig(n cluster.Network, t cluster.Time, node cluster.Node) (netDocument, error) {
	plan := netplan{Version: 2, Renderer: "networkd", Ethernets: map[string]*link{}, VLANs: map[string]*link{}}
	if len(node.Interfaces) == 0 {
		return netDocument{}, errors.New("the node has no network interface")
	}
	for _, i := range node.Interfaces {
		if err := plan.add(i, n, t); err != nil {
			return netDocument{}, fmt.Errorf("interface %s: %w", i.MAC, err)
		}
	}
	return netDocument{Network: plan}, plan.route(n, node)
}

// add configures one interface: the NIC itself, or a VLAN on top of it.
func (p *netplan) add(i cluster.Interface, n cluster.Network, t cluster.Time) error {
	name, nic := p.nic(i.MAC)
	if i.VLAN == 0 {
		if nic.Addresses != nil || nic.DHCP4 || nic.DHCP6 {
			return errors.New("listed twice without a VLAN")
		}
		nic.carry(i, n, t)
		return nil
	}
	vlan := name + "v" + strconv.Itoa(i.VLAN)
	if p.VLANs[vlan] != nil {
		return fmt.Errorf("VLAN %d listed twice", i.VLAN)
	}
	p.VLANs[vlan] = &link{ID: i.VLAN, Link: name}
	p.VLANs[vlan].carry(i, n, t)
	nic.MTU = max(nic.MTU, i.MTU) // a VLAN cannot carry more than its NIC
	return nil
}

// nic returns the NIC with that MAC. As long as it only carries VLANs it has no
// address at all, not even link-local ones, and nothing waits for it.
func (p *netplan) nic(mac cluster.MAC) (string, *link) {
	for name, l := range p.Ethernets {
		if l.Match.MAC == string(mac) {
			return name, l
		}
	}
	name := "nic" + strconv.Itoa(len(p.Ethernets))
	l := &link{Match: &match{MAC: string(mac)}, Optional: true, LinkLocal: &[]string{}}
	p.Ethernets[name] = l
	return name, l
}

// carry gives the link the addresses of an interface and makes boot wait for it.
//
// Router advertisements count only where the LAN is IPv6: there the route comes
// from them. On an IPv4 LAN they would add addresses that nobody planned.
func (l *link) carry(i cluster.Interface, n cluster.Network, t cluster.Time) {
	v6 := n.LAN.IsValid() && n.LAN.Addr().Is6()
	l.Optional = false
	l.LinkLocal = nil
	l.MTU = max(l.MTU, i.MTU)
	l.AcceptRA = v6
	for _, a := range i.Addresses {
		l.Addresses = append(l.Addresses, a.String())
	}
	if !i.DHCP {
		return
	}
	l.DHCP4, l.DHCP6 = !v6, v6
	// The firmware and the initramfs ask by MAC; networkd's own DUID would
	// get another lease, and with it another address, than they did.
	l.DHCPIdentifier = "mac"
	if len(t.Servers) > 0 && l.DHCP4 {
		// timesyncd prefers a link's servers to the configured ones.
		l.DHCP4Overrides = &overrides{}
	}
}

// route puts the default route and the name servers on the static link whose
// network the gateway is in. A node that has DHCP gets both from there if none is.
func (p *netplan) route(n cluster.Network, node cluster.Node) error {
	dhcp := false
	var first *link
	for _, i := range node.Interfaces {
		l := p.carrier(i)
		dhcp = dhcp || i.DHCP
		if first == nil && len(i.Addresses) > 0 && !i.DHCP {
			first = l
		}
		if reaches(i.Addresses, n.Gateway) && !i.DHCP {
			l.Routes = []route{{To: "default", Via: n.Gateway.String()}}
			l.name(n.DNS)
			return nil
		}
	}
	switch {
	case dhcp || first == nil:
		return nil
	case n.Gateway.IsValid():
		return fmt.Errorf("gateway %s is in none of the node's networks", n.Gateway)
	}
	first.name(n.DNS)
	return nil
}

func (p *netplan) carrier(i cluster.Interface) *link {
	name, nic := p.nic(i.MAC)
	if i.VLAN == 0 {
		return nic
	}
	return p.VLANs[name+"v"+strconv.Itoa(i.VLAN)]
}

func (l *link) name(servers []netip.Addr) {
	if len(servers) == 0 {
		return
	}
	l.Nameservers = &nameserver{}
	for _, s := range servers {
		l.Nameservers.Addresses = append(l.Nameservers.Addresses, s.String())
	}
}

func reaches(addresses []netip.Prefix, gateway netip.Addr) bool {
	for _, a := range addresses {
		if gateway.IsValid() && a.Masked().Contains(gateway) {
			return true
		}
	}
	return false
}
