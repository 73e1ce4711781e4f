// Package wol wakes machines that are off: the magic packet of Wake-on-LAN, sent
// as an Ethernet broadcast out of one named interface.
package wol

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/cluster"
)

// port is the discard service, where nobody listens; what counts is the payload,
// which the sleeping card looks for anywhere in a frame (AMD publication 20213).
const port = 9

// repeats of the MAC in a magic packet.
const repeats = 16

// Packet is the magic packet for a machine: six bytes of ones and sixteen times
// its hardware address.
func Packet(mac cluster.MAC) ([]byte, error) {
	hw, err := net.ParseMAC(string(mac))
	if err != nil || len(hw) != 6 {
		return nil, fmt.Errorf("%q is no Ethernet address", mac)
	}
	packet := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for range repeats {
		packet = append(packet, hw...)
	}
	return packet, nil
}

// Wake sends the magic packet for mac out of the interface, to the limited
// broadcast address and to that of each of its IPv4 networks: some switches pass
// on only the one, some cards only see the other.
func Wake(ctx context.Context, iface string, mac cluster.MAC) error {
	packet, err := Packet(mac)
	if err != nil {
		return err
	}
	targets, err := broadcasts(iface)
	if err != nil {
		return err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return setUp(c, iface) }}
	conn, err := lc.ListenPacket(ctx, "udp4", ":0")
	if err != nil {
		return fmt.Errorf("waking %s on %s: %w", mac, iface, err)
	}
	defer conn.Close()
	for _, to := range targets {
		if _, err := conn.WriteTo(packet, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, port))); err != nil {
			return fmt.Errorf("waking %s on %s: %w", mac, iface, err)
		}
	}
	return nil
}

// setUp lets the socket broadcast, and binds it to the interface: the route of
// 255.255.255.255 may lead elsewhere.
func setUp(c syscall.RawConn, iface string) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		if failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1); failed == nil {
			failed = unix.BindToDevice(int(fd), iface)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// broadcasts are the addresses that reach everybody on the interface's network.
func broadcasts(iface string) ([]netip.Addr, error) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", iface, err)
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", iface, err)
	}
	out := []netip.Addr{netip.AddrFrom4([4]byte{255, 255, 255, 255})}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Bits() < 31 {
			out = append(out, last(p))
		}
	}
	return out, nil
}

// last is the last address of an IPv4 network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}
