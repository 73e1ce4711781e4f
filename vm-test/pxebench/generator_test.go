package pxebench

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/vm-test/netns"
)

// generator asks for leases. It reads and writes as many packets with one system
// call as it can, so that it is the servers that are measured.
type generator struct {
	t      *testing.T
	conn   *net.UDPConn
	in     *listen.Batch
	out    *listen.Batch
	series int
}

// answerTime is how long an offer may take before its DISCOVER is sent again, as
// firmware does. It counts as that long.
const answerTime = time.Second

func newGenerator(t *testing.T, client *netns.Host) *generator {
	t.Helper()
	conn := client.ListenUDP(t, peer.Addr().String()+":67")
	return &generator{t: t, conn: conn, in: batch(t, conn), out: batch(t, conn)}
}

func batch(t *testing.T, conn *net.UDPConn) *listen.Batch {
	t.Helper()
	b, err := listen.NewBatch(conn, 2*inFlight, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// asking is one series of requests to one server.
type asking struct {
	g       *generator
	series  byte
	packets []listen.Packet
	sent    []time.Time
	times   []time.Duration // of those that were answered
	done    []bool
	asked   atomic.Int64
}

func (g *generator) asking(to netip.Addr, count int) *asking {
	g.series++
	a := &asking{g: g, series: byte(g.series), sent: make([]time.Time, count), done: make([]bool, count), times: make([]time.Duration, 0, count)}
	for i := range count {
		a.packets = append(a.packets, listen.Packet{Peer: netip.AddrPortFrom(to, 67), Data: discovery(a.series, i)})
	}
	return a
}

// send sends the requests up to another one.
func (a *asking) send(to int) {
	from := int(a.asked.Load())
	now := time.Now()
	for i := from; i < to; i++ {
		a.sent[i] = now
	}
	if n, err := a.g.out.Write(a.packets[from:to]); err != nil {
		a.g.t.Errorf("sending DISCOVER %d: %v", from+n, err)
	}
	a.asked.Store(int64(to))
}

// receive waits for offers and returns how many came.
func (a *asking) receive() int {
	a.g.conn.SetReadDeadline(time.Now().Add(answerTime))
	packets, err := a.g.in.Read()
	now := time.Now()
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			a.g.t.Fatal(err)
		}
		a.again()
		return 0
	}
	came := 0
	for _, p := range packets {
		if i, ok := a.which(p.Data); ok && !a.done[i] {
			a.done[i] = true
			a.times = append(a.times, now.Sub(a.sent[i]))
			came++
		}
	}
	return came
}

// which finds the request that a packet answers, by its transaction.
func (a *asking) which(p []byte) (int, bool) {
	if len(p) < 8 || p[4] != a.series {
		return 0, false
	}
	i := int(binary.BigEndian.Uint32(p[4:]) & 0xffffff)
	return i, i < len(a.packets)
}

func (a *asking) again() {
	for i := range int(a.asked.Load()) {
		if !a.done[i] {
			a.g.in.Write(a.packets[i : i+1]) // while a server starts nobody may be there
		}
	}
}

// together asks with a fixed number on their way.
func (g *generator) together(s *server, count int) []time.Duration {
	a := g.asking(s.addr, count)
	a.send(min(inFlight, count))
	for limit := time.Now().Add(patience); len(a.times) < count; {
		a.send(min(int(a.asked.Load())+a.receive(), count))
		a.check(s, limit)
	}
	return a.times
}

// paced asks so many times a second, whether answers come or not.
func (g *generator) paced(s *server, count int) []time.Duration {
	a := g.asking(s.addr, count)
	go func() {
		for i, start := 0, time.Now(); i < count; i++ {
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / pace)))
			a.send(i + 1)
		}
	}()
	for limit := time.Now().Add(patience); len(a.times) < count; {
		a.receive()
		a.check(s, limit)
	}
	return a.times
}

// patience is how long a series may take.
const patience = time.Minute

func (a *asking) check(s *server, limit time.Time) {
	if time.Now().After(limit) {
		a.g.t.Fatalf("%s: %d of %d offers came", s.name, len(a.times), len(a.packets))
	}
}

// await asks until the server is there, and warm.
func (g *generator) await(to netip.Addr) {
	g.t.Helper()
	g.together(&server{name: to.String(), addr: to}, 200)
}

// discovery is the DISCOVER of one machine; its transaction says which.
func discovery(series byte, i int) []byte {
	mac := net.HardwareAddr{0x52, 0x54, series, byte(i >> 16), byte(i >> 8), byte(i)}
	p := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, HopCount: 1, ClientHWAddr: mac, GatewayIPAddr: peer.Addr().AsSlice(),
		TransactionID: dhcpv4.TransactionID{series, byte(i >> 16), byte(i >> 8), byte(i)}, Options: dhcpv4.Options{},
	}
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeDiscover))
	p.UpdateOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000"))
	p.UpdateOption(dhcpv4.OptClientArch(iana.EFI_X86_64))
	p.UpdateOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionBootfileName, dhcpv4.OptionClassIdentifier))
	return p.ToBytes()
}
