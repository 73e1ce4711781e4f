package pxe

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// packet reads a captured packet: hexadecimal text with comments.
func packet(t testing.TB, name string) *dhcpv4.DHCPv4 {
	t.Helper()
	p, err := dhcpv4.FromBytes(raw(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func raw(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func config(mode Mode) Config {
	return Config{
		Mode: mode, Server: netip.MustParseAddr("10.77.0.1"), HTTP: "http://10.77.0.1:8080", Boot: DefaultBootFiles(),
		Lease: LeaseOptions{
			Network: netip.MustParsePrefix("10.77.0.0/24"), Router: netip.MustParseAddr("10.77.0.2"), Domain: "lab.example",
			DNS: []netip.Addr{netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.3")}, NTP: []netip.Addr{netip.MustParseAddr("10.77.0.2")},
		},
	}
}

func request(p *dhcpv4.DHCPv4) Request {
	return Request{Packet: p, Client: Classify(p), Port: PortServer, From: netip.MustParseAddrPort("0.0.0.0:68")}
}

const (
	machineUUID = "4c4c4544-0042-3510-8056-b4c04f4a4d31" // as QEMU was told
	machineMAC  = "52:54:00:4e:00:01"
	script      = "http://10.77.0.1:8080/boot/ipxe?mac=52:54:00:4e:00:01&uuid=${uuid}&serial=${serial:uristring}&firmware="
	httpLoader  = "http://10.77.0.1:8080/artifacts/netboot/ipxe/snponly.efi"
	uefiLoader  = "netboot/ipxe/snponly.efi"
)
