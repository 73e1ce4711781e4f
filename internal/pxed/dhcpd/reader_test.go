package dhcpd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// relay is where the answers to requests of a burst go: a relay on this host.
type relay struct {
	*testing.T
	reader *reader
	log    *bytes.Buffer
	at     *net.UDPConn
	store  *shelf
}

// shelf keeps leases and counts how often.
type shelf struct {
	saves [][]lease.Lease
	err   error
}

func (s *shelf) Load(context.Context) ([]lease.Lease, error) { return nil, nil }

func (s *shelf) Save(_ context.Context, leases []lease.Lease) error {
	s.saves = append(s.saves, append([]lease.Lease(nil), leases...))
	return s.err
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	out := &relay{T: t, log: &bytes.Buffer{}, store: &shelf{}}
	l := &link{server: &Server{cfg: Config{Store: out.store}}, log: slog.New(slog.NewTextHandler(out.log, nil))}
	l.Config = pxe.Config{Mode: pxe.ModeDHCP, Server: own.Addr(), HTTP: "http://10.67.0.1:8080", Boot: pxe.DefaultBootFiles(), Lease: pxe.LeaseOptions{Network: own.Masked()}}
	var err error
	l.leases, err = lease.New(lease.Config{Network: own.Masked(), First: netip.MustParseAddr("10.67.0.100"), Last: netip.MustParseAddr("10.67.0.110")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Close() })
	batch, err := listen.NewBatch(port, burst, messageSize)
	if err != nil {
		t.Fatal(err)
	}
	if out.at, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9), Port: pxe.PortServer}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.at.Close() })
	out.reader = &reader{link: l, port: pxe.PortServer, batch: batch, all: make([]decided, burst)}
	return out
}

// message is one of machine i, past the relay.
func (r *relay) message(i int, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) listen.Packet {
	r.Helper()
	p, err := dhcpv4.New(append(change, dhcpv4.WithHwAddr(net.HardwareAddr{0x52, 0x54, 0, 0x67, 0, byte(i)}), dhcpv4.WithMessageType(kind), dhcpv4.WithRelay(net.IPv4(127, 0, 0, 9)))...)
	if err != nil {
		r.Fatal(err)
	}
	return listen.Packet{Peer: netip.MustParseAddrPort("127.0.0.9:67"), Data: p.ToBytes()}
}

// answers reads n answers, and that no other comes.
func (r *relay) answers(n int) []*dhcpv4.DHCPv4 {
	r.Helper()
	var out []*dhcpv4.DHCPv4
	buf := make([]byte, 2048)
	for {
		r.at.SetReadDeadline(time.Now().Add(20 * time.Second))
		if len(out) == n { // what was sent is there already: it never left this host
			r.at.SetReadDeadline(time.Now().Add(time.Millisecond))
		}
		size, err := r.at.Read(buf)
		if err != nil {
			break
		}
		p, err := dhcpv4.FromBytes(bytes.Clone(buf[:size]))
		if err != nil {
			r.Fatal(err)
		}
		out = append(out, p)
	}
	if len(out) != n {
		r.Fatalf("%d answers, want %d\n%s", len(out), n, r.log)
	}
	return out
}

// requests takes the machines 1 to n up to the REQUEST that each sends.
func (r *relay) requests(n int) []listen.Packet {
	r.Helper()
	var burst []listen.Packet
	for i := range n {
		burst = append(burst, r.message(i+1, dhcpv4.MessageTypeDiscover))
	}
	r.reader.burst(r.Context(), burst)
	burst = burst[:0]
	for i, offer := range r.answers(n) {
		burst = append(burst, r.message(i+1, dhcpv4.MessageTypeRequest,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(own.Addr().AsSlice())), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr))))
	}
	return burst
}

// The leases of a burst cost one flush of the disk, and each machine hears of its own.
func TestLeasesOfABurstAreKeptTogether(t *testing.T) {
	r := newRelay(t)
	r.reader.burst(t.Context(), r.requests(5))
	if len(r.store.saves) != 1 || len(r.store.saves[0]) != 5 {
		t.Errorf("saved %v", r.store.saves)
	}
	for i, ack := range r.answers(5) {
		kept := r.store.saves[0][i]
		if ack.MessageType() != dhcpv4.MessageTypeAck || ack.YourIPAddr.String() != kept.Addr.String() || ack.ClientHWAddr.String() != string(kept.MAC) {
			t.Errorf("told %s, kept %+v", ack.Summary(), kept)
		}
	}
	if n := strings.Count(r.log.String(), "asked=REQUEST"); n != 5 {
		t.Errorf("%d of 5 are in the log\n%s", n, r.log)
	}
}

// When leases cannot be kept, nobody in the burst who asked for one is answered, and
// everybody else is.
func TestBurstWithoutStore(t *testing.T) {
	r := newRelay(t)
	requests := r.requests(3)
	r.store.err = fmt.Errorf("the disk is full")
	r.reader.burst(t.Context(), append(requests[:2:2], r.message(9, dhcpv4.MessageTypeDiscover), requests[2]))
	if got := r.answers(1); got[0].MessageType() != dhcpv4.MessageTypeOffer {
		t.Errorf("answered with %s", got[0].Summary())
	}
	if n := strings.Count(r.log.String(), "no lease can be given"); n != 3 || strings.Contains(r.log.String(), "asked=REQUEST") {
		t.Errorf("logged\n%s", r.log)
	}
}

// Memory is used again: what was in a message before must not come through.
func TestBurstsKeepApart(t *testing.T) {
	r := newRelay(t)
	loud := r.message(1, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte("loud"))),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient")), dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}))
	r.reader.burst(t.Context(), []listen.Packet{loud, {Peer: loud.Peer, Data: []byte("no DHCP")}})
	if got := r.answers(1)[0]; got.BootFileName == "" || !got.Options.Has(dhcpv4.OptionClientIdentifier) {
		t.Errorf("got %s", got.Summary())
	}
	r.reader.burst(t.Context(), []listen.Packet{r.message(2, dhcpv4.MessageTypeDiscover)})
	if got := r.answers(1)[0]; got.BootFileName != "" || got.Options.Has(dhcpv4.OptionClientIdentifier) || got.Options.Has(dhcpv4.OptionClassIdentifier) {
		t.Errorf("got %s", got.Summary())
	}
}
