package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Packet is one datagram.
type Packet struct {
	Peer netip.AddrPort
	Data []byte
}

// Batch reads the datagrams that have arrived, and writes answers. Like those of a
// Conversation, its reads block a thread. It is for one goroutine.
type Batch struct {
	fd      int
	buffers [][]byte
	packets []Packet
}

// NewBatch reads up to n datagrams of up to size bytes at a time from the port, of
// which only batches may read from then on; there may be several.
func NewBatch(port *net.UDPConn, n, size int) (*Batch, error) {
	raw, err := port.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &Batch{fd: -1, packets: make([]Packet, 0, n)}
	controlled := raw.Control(func(fd uintptr) {
		if b.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(b.fd, false)
		}
	})
	if err := errors.Join(controlled, err); err != nil {
		return nil, fmt.Errorf("taking over a port: %w", err)
	}
	for range n {
		b.buffers = append(b.buffers, make([]byte, size))
	}
	return b, nil
}

// Read waits for the next datagrams. They are valid until the next Read. Its error
// is net.ErrClosed once a StopWith, of any batch of the port, has taken effect.
func (b *Batch) Read() ([]Packet, error) {
	b.packets = b.packets[:0]
	for flags := 0; len(b.packets) < len(b.buffers); flags = unix.MSG_DONTWAIT {
		buf := b.buffers[len(b.packets)]
		n, from, err := unix.Recvfrom(b.fd, buf, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && len(b.packets) > 0: // nothing more is there; any other error will come again
			return b.packets, nil
		case err != nil:
			return nil, err
		}
		at, ok := from.(*unix.SockaddrInet4)
		if !ok { // no sender: the port was shut
			return nil, net.ErrClosed
		}
		b.packets = append(b.packets, Packet{netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)), buf[:n]})
	}
	return b.packets, nil
}

// Write sends a datagram.
func (b *Batch) Write(p Packet) error {
	return unix.Sendto(b.fd, p.Data, 0, &unix.SockaddrInet4{Addr: p.Peer.Addr().As4(), Port: int(p.Peer.Port())})
}

// StopWith is as that of Conversation, for all batches of the port.
func (b *Batch) StopWith(ctx context.Context) func() { return stopWith(ctx, b.fd) }

// Close ends the batch, not the port; nobody may be reading.
func (b *Batch) Close() { unix.Close(b.fd) }
