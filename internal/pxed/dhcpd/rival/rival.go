// Package rival looks for other DHCP servers on a network, in the way of a client:
// it asks for an address and takes none. A second DHCP server on a network that has
// one gives addresses that are taken, and gateways that are none.
package rival

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/listen"
)

// Server is a DHCP server that answered.
type Server struct {
	Addr  netip.Addr // its own
	Offer netip.Addr // what it would have given
}

// String is the server for people.
func (s Server) String() string { return fmt.Sprintf("%s (it offers %s)", s.Addr, s.Offer) }

// Patience is how long Find waits at least to be sure that there is nobody: dnsmasq
// looks for three seconds whether an address is free before it offers it.
const Patience = 5 * time.Second

// pause is when the question is repeated: the first packet on a port that a switch
// has just brought up is often lost.
const pause = 1500 * time.Millisecond

// Find returns the first server that offers an address on the interface, and whether
// there was one until ctx ended. It needs the port of DHCP clients for itself.
func Find(ctx context.Context, iface string) (Server, bool, error) {
	nic, err := net.InterfaceByName(iface)
	if err != nil {
		return Server{}, false, err
	}
	const client = 68
	conn, err := listen.UDP(ctx, iface, client)
	if err != nil {
		return Server{}, false, err
	}
	defer conn.Close()
	ask, err := dhcpv4.New(
		dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(nic.HardwareAddr), dhcpv4.WithBroadcast(true),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter),
	)
	if err != nil {
		return Server{}, false, fmt.Errorf("making a DHCPDISCOVER: %w", err)
	}
	for ctx.Err() == nil {
		s, ok, err := once(ctx, conn, ask)
		if ok || err != nil {
			return s, ok, err
		}
	}
	return Server{}, false, nil
}

// once asks, and listens until it is time to ask again.
func once(ctx context.Context, conn *net.UDPConn, ask *dhcpv4.DHCPv4) (Server, bool, error) {
	const server = 67
	if _, err := conn.WriteToUDPAddrPort(ask.ToBytes(), netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), server)); err != nil {
		return Server{}, false, fmt.Errorf("asking for DHCP servers: %w", err)
	}
	until := time.Now().Add(pause)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetReadDeadline(until); err != nil {
		return Server{}, false, err
	}
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return Server{}, false, nil
		}
		if err != nil {
			return Server{}, false, fmt.Errorf("listening for DHCP servers: %w", err)
		}
		if s, ok := offer(buf[:n], from.Addr(), ask); ok {
			return s, true, nil
		}
	}
}

// offer reads an answer to the question. A proxyDHCP server gives no address and is
// no rival.
func offer(raw []byte, from netip.Addr, ask *dhcpv4.DHCPv4) (Server, bool) {
	m, err := dhcpv4.FromBytes(raw)
	if err != nil || m.OpCode != dhcpv4.OpcodeBootReply || m.TransactionID != ask.TransactionID || m.MessageType() != dhcpv4.MessageTypeOffer {
		return Server{}, false
	}
	given, ok := netip.AddrFromSlice(m.YourIPAddr.To4())
	if !ok || given.IsUnspecified() {
		return Server{}, false
	}
	s := Server{Addr: from.Unmap(), Offer: given}
	if id, ok := netip.AddrFromSlice(m.ServerIdentifier().To4()); ok {
		s.Addr = id
	}
	return s, true
}
