package dhcpd

import (
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// BenchmarkDecision is what one request costs without its network: read, decide,
// write, log.
func BenchmarkDecision(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	l := &link{server: &Server{}, log: slog.New(slog.NewTextHandler(null, nil)).With("interface", "eth0")}
	l.Config = pxe.Config{Mode: pxe.ModeDHCP, Server: own.Addr(), HTTP: "http://10.67.0.1:8080", Boot: pxe.DefaultBootFiles(), Lease: pxe.LeaseOptions{Network: own.Masked()}}
	l.leases, err = lease.New(lease.Config{Network: own.Masked(), First: netip.MustParseAddr("10.67.0.100"), Last: netip.MustParseAddr("10.67.0.110")}, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := dhcpv4.NewDiscovery([]byte{0x52, 0x54, 0, 0x67, 0, 1}, dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")), dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}))
	if err != nil {
		b.Fatal(err)
	}
	raw := p.ToBytes()
	from := netip.MustParseAddrPort("0.0.0.0:68")
	for b.Loop() {
		p, err := dhcpv4.FromBytes(raw)
		if err != nil {
			b.Fatal(err)
		}
		q := pxe.Request{Packet: p, Client: pxe.Classify(p), Port: pxe.PortServer, From: from}
		q.Grant = l.leases.Answer(time.Now(), p, q.Client, own.Addr()).Grant
		d := pxe.Decide(q, l.Config)
		d.Reply.ToBytes()
		l.record(b.Context(), q, d)
	}
}
