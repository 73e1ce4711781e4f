package dhcpd

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/lines"
	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// BenchmarkDecision is what one request costs beside what it takes to receive it:
// decide, send to the own host, log.
func BenchmarkDecision(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	log := lines.New(null)
	defer log.Close()
	l := &link{server: &Server{}, log: slog.New(slog.NewTextHandler(log, nil)).With("interface", "eth0")}
	l.Config = pxe.Config{Mode: pxe.ModeDHCP, Server: own.Addr(), HTTP: "http://10.67.0.1:8080", Boot: pxe.DefaultBootFiles(), Lease: pxe.LeaseOptions{Network: own.Masked()}}
	l.leases, err = lease.New(lease.Config{Network: own.Masked(), First: netip.MustParseAddr("10.67.0.100"), Last: netip.MustParseAddr("10.67.0.110")}, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := dhcpv4.NewDiscovery([]byte{0x52, 0x54, 0, 0x67, 0, 1}, dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}), dhcpv4.WithRelay([]byte{127, 0, 0, 1}))
	if err != nil {
		b.Fatal(err)
	}
	port, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer port.Close()
	batch, err := listen.NewBatch(port, burst, messageSize)
	if err != nil {
		b.Fatal(err)
	}
	r := &reader{link: l, port: pxe.PortServer, batch: batch, all: make([]decided, burst)}
	packets := []listen.Packet{{Peer: netip.MustParseAddrPort("127.0.0.1:67"), Data: p.ToBytes()}}
	b.ReportAllocs()
	for b.Loop() {
		r.burst(b.Context(), packets)
	}
}
