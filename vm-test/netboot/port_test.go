package netboot

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/pxe"
)

// TestPort4011 sends what OVMF's PXE sends to the port on which firmware asks a proxy
// that named no boot file in its offer. pxed names it always, so that firmware here
// never asks; other firmware does.
func TestPort4011(t *testing.T) {
	full(t)
	l := newLab(t)
	for _, mode := range []pxe.Mode{pxe.ModeProxy, pxe.ModeDHCP} {
		t.Run(string(mode), func(t *testing.T) {
			s := l.serve(t, mode)
			c := newClient(t, l)
			own := netip.MustParseAddr("10.0.2.90")
			p := captured(t, "ovmf-request")
			p.ClientIPAddr = own.AsSlice() // from now on it has an address, and no broadcast is wanted
			p.Flags = 0
			at := len(s.said(t))
			r := c.ask(t, p, netip.AddrPortFrom(s.at, pxe.PortPXE))
			if r.MessageType() != dhcpv4.MessageTypeAck || r.TransactionID != p.TransactionID || r.BootFileName != "netboot/ipxe/snponly.efi" {
				t.Errorf("answer %s", r.Summary())
			}
			if got, _ := netip.AddrFromSlice(r.ServerIPAddr.To4()); got != s.at {
				t.Errorf("next server %s", got)
			}
			if got := string(r.Options.Get(dhcpv4.OptionClassIdentifier)); got != "PXEClient" {
				t.Errorf("class %q", got)
			}
			if lease := r.IPAddressLeaseTime(0); lease != 0 {
				t.Errorf("a lease of %s on this port", lease)
			}
			s.logs(t, at, "msg=dhcp", "port=4011", "gave=ipxe", "mac="+p.ClientHWAddr.String())
			c.load(t, r.BootFileName)
			s.kill()
		})
	}
}

// captured is a packet of the golden tests: hexadecimal lines, and comments.
func captured(t *testing.T, name string) *dhcpv4.DHCPv4 {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(string(read(t, "../../internal/pxed/pxe/testdata/"+name+".hex"))) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	raw, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := dhcpv4.FromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask sends a packet to a port of pxed and gives the answer.
func (c *client) ask(t *testing.T, p *dhcpv4.DHCPv4, to netip.AddrPort) *dhcpv4.DHCPv4 {
	t.Helper()
	conn := c.host.ListenUDP(t, ":68")
	defer conn.Close()
	if _, err := conn.WriteToUDPAddrPort(p.ToBytes(), to); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dhcpv4.FromBytes(buf[:n])
	if err != nil {
		t.Fatal(err)
	}
	return r
}
