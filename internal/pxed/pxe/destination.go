package pxe

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
)

// Destination is where a reply goes. With a MAC, the machine has no address yet
// that it would answer ARP for: the packet must be framed for that MAC by hand.
// Who cannot do that may broadcast instead (RFC 2131 section 4.1).
type Destination struct {
	Addr netip.AddrPort
	MAC  cluster.MAC
}

// Broadcast is the destination that every machine hears.
func Broadcast() Destination {
	return Destination{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), PortClient)}
}

// destination follows RFC 2131 section 4.1. An offer of a proxy has no yiaddr that
// it could be sent to, so it is broadcast.
func destination(q Request, r *dhcpv4.DHCPv4) Destination {
	nak := r.Options[optMessageType][0] == byte(dhcpv4.MessageTypeNak)
	client, hasClient := netip.AddrFromSlice(q.Packet.ClientIPAddr)
	your, _ := netip.AddrFromSlice(r.YourIPAddr)
	switch {
	case q.Client.Relay.IsValid():
		if nak { // section 4.3.2: the relay broadcasts it
			r.Flags |= flagBroadcast
		}
		return Destination{Addr: netip.AddrPortFrom(q.Client.Relay, PortServer)}
	case q.Port == PortPXE && q.From.Addr().IsValid() && !q.From.Addr().IsUnspecified():
		return Destination{Addr: q.From}
	case nak:
		return Broadcast()
	case hasClient && !client.Unmap().IsUnspecified():
		return Destination{Addr: netip.AddrPortFrom(client.Unmap(), PortClient)}
	case q.Packet.Flags&flagBroadcast != 0 || !your.IsValid() || your.Unmap().IsUnspecified():
		return Broadcast()
	default:
		return Destination{Addr: netip.AddrPortFrom(your.Unmap(), PortClient), MAC: q.Client.MAC}
	}
}

// flagBroadcast is the one flag of a DHCP header.
const flagBroadcast = 0x8000
