package listen

import (
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
)

// Packet is one datagram.
type Packet struct {
	Peer netip.AddrPort
	Data []byte
}

// Batch reads and writes many datagrams with one system call: those that wait
// already. It is for one goroutine.
type Batch struct {
	conn    *ipv4.PacketConn
	in, out []ipv4.Message
	packets []Packet
}

// NewBatch reads up to n datagrams of up to size bytes at a time.
func NewBatch(conn *net.UDPConn, n, size int) *Batch {
	b := &Batch{conn: ipv4.NewPacketConn(conn), in: make([]ipv4.Message, n)}
	for i := range b.in {
		b.in[i].Buffers = [][]byte{make([]byte, size)}
	}
	return b
}

// Read waits for the next datagrams. They are valid until the next Read.
func (b *Batch) Read() ([]Packet, error) {
	n, err := b.conn.ReadBatch(b.in, 0)
	if err != nil {
		return nil, err
	}
	b.packets = b.packets[:0]
	for _, m := range b.in[:n] {
		from := m.Addr.(*net.UDPAddr).AddrPort()
		b.packets = append(b.packets, Packet{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), m.Buffers[0][:m.N]})
	}
	return b.packets, nil
}

// Write sends datagrams and returns what went wrong with each; nil when nothing did.
func (b *Batch) Write(packets []Packet) map[int]error {
	b.out = b.out[:0]
	for _, p := range packets {
		b.out = append(b.out, ipv4.Message{Buffers: [][]byte{p.Data}, Addr: net.UDPAddrFromAddrPort(p.Peer)})
	}
	var failed map[int]error
	for done := 0; done < len(b.out); {
		n, err := b.conn.WriteBatch(b.out[done:], 0)
		if done += max(n, 0); err != nil {
			if failed == nil {
				failed = map[int]error{}
			}
			failed[done] = err
			done++ // the one that could not be sent
		}
	}
	return failed
}
