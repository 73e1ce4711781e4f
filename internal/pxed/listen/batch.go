package listen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Packet is one datagram.
type Packet struct {
	Peer netip.AddrPort
	Data []byte
}

// Batch reads the datagrams that have arrived, and writes answers, each with one
// system call for all of them. It is for one goroutine.
//
// Unlike a Conversation it waits in the runtime: a thread that waits in a system
// call keeps the runtime's monitor awake, which for a server that is asked now and
// then costs more than the answers do.
type Batch struct {
	port    syscall.RawConn
	in, out messages
	packets []Packet

	// What the runtime calls when the port is ready, and what came of it.
	read, write func(fd uintptr) (done bool)
	number      int // of datagrams: to be sent, or received or sent
	err         error
}

// NewBatch reads up to n datagrams of up to size bytes at a time from the port.
func NewBatch(port *net.UDPConn, n, size int) (*Batch, error) {
	raw, err := port.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("taking over a port: %w", err)
	}
	b := &Batch{port: raw, packets: make([]Packet, 0, n), in: newAddressed(n), out: newAddressed(n)}
	for i := range n {
		b.in.point(i, make([]byte, size))
	}
	b.read = func(fd uintptr) bool {
		b.number, b.err = b.in.receive(int(fd))
		return !errors.Is(b.err, unix.EAGAIN)
	}
	b.write = func(fd uintptr) bool {
		n, err := b.out.sendNow(int(fd), b.number)
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		b.number, b.err = n, err
		return true
	}
	return b, nil
}

// Read waits for the next datagrams. They are valid until the next Read. Deadlines
// and the end of the port count, with its errors.
func (b *Batch) Read() ([]Packet, error) {
	b.err = nil
	if err := errors.Join(b.port.Read(b.read), b.err); err != nil {
		return nil, err
	}
	b.packets = b.packets[:0]
	for i := range b.number {
		b.packets = append(b.packets, b.in.packet(i))
	}
	return b.packets, nil
}

// Write sends datagrams until one of them cannot be sent. It returns how many were.
func (b *Batch) Write(packets []Packet) (int, error) {
	done := 0
	for done < len(packets) {
		b.number, b.err = min(len(packets)-done, len(b.out.headers)), nil
		for i, p := range packets[done : done+b.number] {
			b.out.address(i, p)
		}
		if err := errors.Join(b.port.Write(b.write), b.err); err != nil {
			return done, err
		}
		done += b.number
	}
	return done, nil
}
