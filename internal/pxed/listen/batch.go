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

// Batch reads the datagrams that have arrived, and writes answers, each with one
// system call for all of them. Like those of a Conversation, its reads block a
// thread. It is for one goroutine.
type Batch struct {
	fd      int
	in, out messages
	packets []Packet
}

// NewBatch reads up to n datagrams of up to size bytes at a time from the port, of
// which only batches may read from then on; there may be several.
func NewBatch(port *net.UDPConn, n, size int) (*Batch, error) {
	raw, err := port.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &Batch{fd: -1, packets: make([]Packet, 0, n), in: newAddressed(n), out: newAddressed(n)}
	controlled := raw.Control(func(fd uintptr) {
		if b.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(b.fd, false)
		}
	})
	if err := errors.Join(controlled, err); err != nil {
		return nil, fmt.Errorf("taking over a port: %w", err)
	}
	for i := range n {
		b.in.point(i, make([]byte, size))
	}
	return b, nil
}

// Read waits for the next datagrams. They are valid until the next Read. Its error
// is net.ErrClosed once a StopWith, of any batch of the port, has taken effect.
func (b *Batch) Read() ([]Packet, error) {
	n, err := b.in.receive(b.fd)
	if err != nil {
		return nil, err
	}
	b.packets = b.packets[:0]
	for i := range n {
		p, ok := b.in.packet(i)
		if !ok { // no sender: the port was shut
			return nil, net.ErrClosed
		}
		b.packets = append(b.packets, p)
	}
	return b.packets, nil
}

// Write sends datagrams until one of them cannot be sent. It returns how many were.
func (b *Batch) Write(packets []Packet) (int, error) {
	done := 0
	for done < len(packets) {
		n := min(len(packets)-done, len(b.out.headers))
		for i, p := range packets[done : done+n] {
			b.out.address(i, p)
		}
		sent, err := b.out.send(b.fd, n)
		if done += sent; err != nil {
			return done, err
		}
	}
	return done, nil
}

// StopWith is as that of Conversation, for all batches of the port.
func (b *Batch) StopWith(ctx context.Context) func() { return stopWith(ctx, b.fd) }

// Close ends the batch, not the port; nobody may be reading.
func (b *Batch) Close() { unix.Close(b.fd) }
