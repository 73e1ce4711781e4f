package facts

import (
	"net/netip"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// Seen is what one node said when it was asked, or why it could not be.
type Seen struct {
	Node  string
	Err   error
	Facts Facts
	// Ahead and Behind bound how far the node's clock is ahead of ours: the question
	// took some time, and the answer was given somewhere within. A negative value is
	// behind.
	Behind, Ahead time.Duration
	// DropIns are the files in config.yaml.d by name. They may hold secrets, so they
	// are judged and never shown.
	DropIns map[string][]byte
}

// Off is by how much the node's clock is ahead of ours for certain; zero when they
// may be the same.
func (s Seen) Off() time.Duration { return outside(s.Behind, s.Ahead) }

// Apart is by how much the clocks of two nodes differ for certain.
func (s Seen) Apart(o Seen) time.Duration { return outside(s.Behind-o.Ahead, s.Ahead-o.Behind) }

// outside is how far an interval lies from zero.
func outside(least, most time.Duration) time.Duration {
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// Found are the addresses in the LAN that nodes have on their first card, by name,
// for those that take theirs from DHCP. The API's virtual address is nobody's own.
func Found(c cluster.Cluster, seen []Seen) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	for _, s := range seen {
		for _, n := range c.Nodes {
			if s.Err != nil || n.Name != s.Node || len(n.Interfaces) == 0 {
				continue
			}
			if a := s.Facts.lan(c.Network, n.Interfaces[0]); a.IsValid() {
				out[n.Name] = a
			}
		}
	}
	return out
}

func (f Facts) lan(net cluster.Network, want cluster.Interface) netip.Addr {
	for _, i := range f.Interfaces {
		if !strings.EqualFold(i.MAC, string(want.MAC)) || i.VLAN != want.VLAN {
			continue
		}
		for _, text := range i.Addresses {
			if p, err := netip.ParsePrefix(text); err == nil && net.LAN.Contains(p.Addr()) && p.Addr() != net.APIVIP {
				return p.Addr()
			}
		}
	}
	return netip.Addr{}
}
