package dhcpd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/pxed/pxe"
)

// frames sends UDP packets to machines that have no address yet and so answer no
// ARP: the kernel is given the MAC instead of asking for it.
type frames struct {
	fd    int
	index int
}

// openFrames needs CAP_NET_RAW. Its socket receives nothing: protocol 0.
func openFrames(nic *net.Interface) (*frames, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if errors.Is(err, unix.EPERM) {
		return nil, errors.New("no CAP_NET_RAW")
	}
	if err != nil {
		return nil, fmt.Errorf("opening a packet socket: %w", err)
	}
	return &frames{fd: fd, index: nic.Index}, nil
}

func (f *frames) close() {
	if f != nil {
		unix.Close(f.fd)
	}
}

func (f *frames) send(from netip.Addr, to pxe.Destination, payload []byte) error {
	mac, err := net.ParseMAC(string(to.MAC))
	if err != nil {
		return err
	}
	at := &unix.SockaddrLinklayer{Ifindex: f.index, Protocol: networkOrder(unix.ETH_P_IP), Halen: uint8(len(mac))}
	copy(at.Addr[:], mac)
	return unix.Sendto(f.fd, datagram(netip.AddrPortFrom(from, pxe.PortServer), to.Addr, payload), 0, at)
}

func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

const (
	ipHeader  = 20
	udpHeader = 8
)

// datagram is an IPv4 packet (RFC 791) with a UDP packet (RFC 768) in it.
func datagram(from, to netip.AddrPort, payload []byte) []byte {
	b := make([]byte, ipHeader+udpHeader+len(payload))
	src, dst := from.Addr().As4(), to.Addr().As4()
	b[0] = 0x45 // version 4, five words of header
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[8] = 64 // time to live
	b[9] = unix.IPPROTO_UDP
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[10:], checksum(0, b[:ipHeader]))

	u := b[ipHeader:]
	binary.BigEndian.PutUint16(u[0:], from.Port())
	binary.BigEndian.PutUint16(u[2:], to.Port())
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	copy(u[udpHeader:], payload)
	pseudo := uint32(unix.IPPROTO_UDP) + uint32(len(u)) + sum(b[12:ipHeader])
	if c := checksum(pseudo, u); c != 0 {
		binary.BigEndian.PutUint16(u[6:], c)
	} else { // zero would mean "none"
		binary.BigEndian.PutUint16(u[6:], 0xffff)
	}
	return b
}

// sum adds 16-bit words (RFC 1071); it does not overflow for what fits a packet.
func sum(b []byte) uint32 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func checksum(start uint32, b []byte) uint16 {
	s := start + sum(b)
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}
