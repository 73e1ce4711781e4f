package dhcpd

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/netns"
)

// router puts dnsmasq, as the network's own DHCP server, beside the proxy.
func router(t *testing.T, n *network) {
	t.Helper()
	h := netns.NewHost(t)
	netns.Plug(t, n.bridge, h, "52:54:00:67:00:fe", "10.67.0.2/24")
	cmd := h.Command(t.Context(), "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--bind-interfaces", "--interface=eth0",
		"--dhcp-range=10.67.0.100,10.67.0.110", "--no-ping", "--dhcp-authoritative", "--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"), "--user=root", "--log-facility=-", "--log-dhcp", "--pid-file")
	cmd.Stderr = n
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	n.wait(t, "sockets bound exclusively to interface eth0")
}

// discover is a DISCOVER as OVMF sends it; without a class, as a laptop does.
func discover(t *testing.T, mac, class string) *dhcpv4.DHCPv4 {
	t.Helper()
	hw, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dhcpv4.NewDiscovery(hw, dhcpv4.WithBroadcast(true))
	if err != nil {
		t.Fatal(err)
	}
	if class != "" {
		p.UpdateOption(dhcpv4.OptClassIdentifier(class))
		p.UpdateOption(dhcpv4.OptClientArch(iana.EFI_X86_64))
	}
	return p
}

// tell sends a packet from a host with an address to the server, as a relay in a
// switch would.
func tell(t *testing.T, h *netns.Host, p *dhcpv4.DHCPv4, to string) *net.UDPConn {
	t.Helper()
	conn := h.ListenUDP(t, ":68")
	if _, err := conn.WriteToUDPAddrPort(p.ToBytes(), netip.MustParseAddrPort(to)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ask sends a packet and returns the first reply.
func ask(t *testing.T, h *netns.Host, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	t.Helper()
	conn := tell(t, h, p, "10.67.0.1:67")
	defer conn.Close()
	buf := make([]byte, 2048)
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
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

// A laptop next to the proxy gets its lease from dnsmasq and nothing from us.
func TestProxyLeavesOthersAlone(t *testing.T) {
	n := serve(t, pxe.ModeProxy, nil)
	router(t, n)
	told := dhclient(t, n.client(t, "52:54:00:67:00:bb"))
	if !strings.Contains(told, "10.67.0.2") || strings.Contains(told, "10.67.0.1\n") {
		t.Errorf("dhclient was told %s", told)
	}
	n.wait(t, "none nothing", "no netboot client")
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.gave {
		if g != "none nothing" {
			t.Errorf("the proxy gave %s", g)
		}
	}
}

// Firmware that asks again and again is noticed; see also pxe.Tracker.
func TestFirmwareThatIgnoresUsIsNoticed(t *testing.T) {
	n := serve(t, pxe.ModeProxy, nil)
	h := netns.NewHost(t)
	netns.Plug(t, n.bridge, h, "52:54:00:67:00:cc", "10.67.0.50/24")
	p := discover(t, "52:54:00:67:00:cc", "PXEClient:Arch:00007:UNDI:003000")
	for range 3 {
		if r := ask(t, h, p); r.TransactionID != p.TransactionID || r.BootFileName != "netboot/ipxe/snponly.efi" {
			t.Errorf("got %s", r.Summary())
		}
	}
	n.wait(t, "uefi-tftp ipxe", "machine is not netbooting", "mode: dhcp")
	n.server.Followed("52:54:00:67:00:cc")
}

// A verdict that does not come in time keeps nobody waiting.
func TestLateVerdict(t *testing.T) {
	n := serve(t, pxe.ModeProxy, func(c *Config) { c.Verdicts = late{} })
	h := netns.NewHost(t)
	netns.Plug(t, n.bridge, h, "52:54:00:67:00:cc", "10.67.0.50/24")
	ask(t, h, discover(t, "52:54:00:67:00:cc", "PXEClient:Arch:00007:UNDI:003000"))
	n.wait(t, "no verdict, the script will decide", "uefi-tftp ipxe")
}

// What an interface is bound to is what is answered: the same request on another
// network gets nothing.
func TestOtherInterfacesAreNotAnswered(t *testing.T) {
	n := serve(t, pxe.ModeProxy, nil)
	other := netns.Bridge(t, "10.68.0.1/24")
	h := netns.NewHost(t)
	netns.Plug(t, other, h, "52:54:00:67:00:cc", "10.68.0.50/24")
	tell(t, h, discover(t, "52:54:00:67:00:cc", "PXEClient"), "10.68.0.1:67")
	inside := netns.NewHost(t)
	netns.Plug(t, n.bridge, inside, "52:54:00:67:00:dd", "10.67.0.50/24")
	ask(t, inside, discover(t, "52:54:00:67:00:dd", "PXEClient"))
	n.wait(t, "52:54:00:67:00:dd")
	n.mu.Lock()
	defer n.mu.Unlock()
	if strings.Contains(n.log.String(), "52:54:00:67:00:cc") {
		t.Error("a request on another interface was seen")
	}
}
