package pxed

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pxed/dhcpd"
	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// network is a served interface and our address on it.
type network struct {
	name   string
	prefix netip.Prefix
}

func networks(o Options) ([]network, error) {
	var out []network
	for i, name := range o.Interfaces {
		if slices.Contains(o.Interfaces[:i], name) {
			continue // named twice, served once
		}
		prefix, err := listen.Address(name)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		out = append(out, network{name, prefix})
	}
	return out, nil
}

// openDHCP sends machines to the boot loaders.
func (s *server) openDHCP(ctx context.Context) (func(context.Context) error, error) {
	c := dhcpd.Config{Verdicts: verdicts{s}, Store: s.Leases, Counters: s.metrics, Log: s.Log}
	for _, n := range s.nets {
		c.Interfaces = append(c.Interfaces, s.dhcpOf(n))
	}
	if err := s.alone(); err != nil {
		return nil, err
	}
	d, err := dhcpd.Listen(ctx, c)
	if err != nil {
		return nil, err
	}
	s.dhcp = d
	return d.Serve, nil
}

// dhcpOf is what machines behind an interface are told. They reach HTTP at our
// address there, or at the one address that HTTP was given.
func (s *server) dhcpOf(n network) dhcpd.Interface {
	at := netip.AddrPortFrom(n.prefix.Addr(), 0)
	for _, a := range s.http {
		if a.Addr() == n.prefix.Addr() || len(s.http) == 1 && !a.Addr().IsUnspecified() {
			at = a
		} else if at.Port() == 0 {
			at = netip.AddrPortFrom(n.prefix.Addr(), a.Port())
		}
	}
	c := pxe.Config{Mode: s.Mode, Server: n.prefix.Addr(), HTTP: "http://" + at.String(), Boot: pxe.DefaultBootFiles()}
	i := dhcpd.Interface{Name: n.name, Config: c}
	if s.Mode == pxe.ModeDHCP {
		i.Config.Lease, i.Leases = leaseOptions(s.Cluster, n), leases(s.Cluster, n, s.Pool)
	}
	return i
}

func leaseOptions(c cluster.Cluster, n network) pxe.LeaseOptions {
	o := pxe.LeaseOptions{Network: n.prefix.Masked(), DNS: c.Network.DNS, Domain: c.Network.DNSZone}
	if n.prefix.Contains(c.Network.Gateway) {
		o.Router = c.Network.Gateway
	}
	return o
}

// leases gives the nodes the addresses that the profile gives them, and everybody
// else one of the pool.
func leases(c cluster.Cluster, n network, p Pool) lease.Config {
	network := n.prefix.Masked()
	if !p.First.IsValid() {
		p = upperHalf(network)
	}
	l := lease.Config{Network: network, First: p.First, Last: p.Last, Taken: []netip.Addr{n.prefix.Addr()}}
	for _, a := range []netip.Addr{c.Network.Gateway, c.Network.APIVIP} {
		if network.Contains(a) {
			l.Taken = append(l.Taken, a)
		}
	}
	for _, node := range c.Nodes {
		if r, ok := reservation(node, network); ok && r.Addr != n.prefix.Addr() {
			l.Reserved = append(l.Reserved, r)
		}
	}
	return l
}

// reservation is the address that a node has on the network it boots from: one
// behind a VLAN is on another.
func reservation(n cluster.Node, network netip.Prefix) (lease.Reservation, bool) {
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			if i.VLAN == 0 && network.Contains(a.Addr()) {
				return lease.Reservation{MAC: i.MAC, Addr: a.Addr(), Host: n.Name}, true
			}
		}
	}
	return lease.Reservation{}, false
}

// upperHalf is the upper half of a network, without its broadcast address.
func upperHalf(network netip.Prefix) Pool {
	b := network.Addr().As4()
	base, size := binary.BigEndian.Uint32(b[:]), uint32(1)<<(32-network.Bits())
	at := func(n uint32) netip.Addr {
		binary.BigEndian.PutUint32(b[:], base+n)
		return netip.AddrFrom4(b)
	}
	return Pool{First: at(size / 2), Last: at(max(size/2, size-2))}
}

// ParsePool reads FIRST-LAST.
func ParsePool(text string) (Pool, error) {
	first, last, _ := strings.Cut(text, "-")
	a, err := netip.ParseAddr(first)
	b, failed := netip.ParseAddr(last)
	if err != nil || failed != nil || !a.Is4() || !b.Is4() {
		return Pool{}, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%q is no range of addresses", text), "such as 10.0.2.100-10.0.2.199"))
	}
	return Pool{First: a, Last: b}, nil
}

// verdicts tells the DHCP side what the desk knows.
type verdicts struct{ s *server }

// Verdict implements dhcpd.Verdicts.
func (v verdicts) Verdict(ctx context.Context, c pxe.Client) (pxe.Verdict, error) {
	idle, err := v.s.desk.Idle(ctx, c.MAC)
	if err != nil || !idle {
		return pxe.Netboot, err
	}
	return pxe.OwnDisk, nil
}
