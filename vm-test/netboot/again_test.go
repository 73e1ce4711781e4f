package netboot

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/pin/tftp/v3"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/qemu"
)

// How often an installed machine boots from the network: with real firmware up to
// the decision, with real firmware into its disk, and as packets alone.
const (
	realBoots      = 4
	simulatedBoots = 95
)

// checkAgain boots an installed machine from the network a hundred times. Nothing of
// its disk may change, and nobody may be given an installer.
func checkAgain(t *testing.T, s *server, b *box) {
	t.Helper()
	before, receipt := sum(t, b.disks[0].Path), s.show(t).Receipt
	at := len(s.said(t))
	for range realBoots {
		bootToDecision(t, s, b)
	}
	bootThrough(t, s, b)
	c := newClient(t, s.lab)
	for range simulatedBoots {
		c.boot(t)
	}
	if got := sum(t, b.disks[0].Path); got != before {
		t.Errorf("the disk was changed: %s, was %s", got, before)
	}
	if log := s.said(t)[at:]; strings.Contains(log, "gets=install") || strings.Count(log, "gets=boot-disk") < realBoots+1+simulatedBoots {
		t.Errorf("not everybody was sent to the disk:\n%s", interesting(log))
	}
	if m := s.show(t); m.State != "installed" || m.Receipt.Finished != receipt.Finished {
		t.Errorf("n1 is %s, its receipt of %s", m.State, m.Receipt.Finished)
	}
	t.Logf("%d boots from the network: the disk has the SHA-256 %s as before", realBoots+1+simulatedBoots, before)
}

// bootToDecision boots the machine from the network first, and pulls the plug when
// it has been sent to its disk: the system on it would write its journal.
func bootToDecision(t *testing.T, s *server, b *box) {
	t.Helper()
	b.networkFirst = true
	defer func() { b.networkFirst = false }()
	at := len(s.said(t))
	v := b.powerOn(t)
	s.logs(t, at, "msg=boot", "node="+nodeName, "gets=boot-disk")
	sees(t, v, qemu.Like("slipway: n1"))
	pull(t, v)
	step(t, v, "network first: sent to its disk, switched off")
}

// bootThrough lets the machine go on to its disk, of which it gets a copy that is
// thrown away.
func bootThrough(t *testing.T, s *server, b *box) {
	t.Helper()
	copied := *b
	copied.networkFirst = true
	overlay, err := qemu.Overlay(t.Context(), b.disks[0].Path, "raw", s.lab.path("overlay.qcow2"), systemSize)
	if err != nil {
		t.Fatal(err)
	}
	overlay.Serial = b.disks[0].Serial
	copied.disks = []qemu.Disk{overlay, b.disks[1]}
	at := len(s.said(t))
	v := copied.powerOn(t)
	s.logs(t, at, "msg=boot", "node="+nodeName, "gets=boot-disk")
	sees(t, v, qemu.Like("nodeinit: booting slot a from /dev/vda serial "+s.lab.node.System.Serial))
	pull(t, v)
	step(t, v, "network first: its disk was started")
}

// client is a machine's firmware and iPXE, as far as the network sees them.
type client struct {
	lab  *lab
	host *netns.Host
	mac  net.HardwareAddr
}

func newClient(t *testing.T, l *lab) *client {
	t.Helper()
	c := &client{lab: l, host: netns.NewHost(t)}
	var err error
	if c.mac, err = net.ParseMAC(string(l.node.Interfaces[0].MAC)); err != nil {
		t.Fatal(err)
	}
	netns.Plug(t, l.bridge, c.host, "52:54:00:00:00:90", "10.0.2.90/24")
	return c
}

// boot goes from the firmware's DISCOVER to the script, which must lead to the disk.
func (c *client) boot(t *testing.T) {
	t.Helper()
	offer := c.discover(t, dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000"))
	c.load(t, offer.BootFileName)
	offer = c.discover(t, dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003010"),
		dhcpv4.OptGeneric(dhcpv4.OptionUserClassInformation, []byte("iPXE")),
		// http, https and efi are what this iPXE can do (iPXE's option 175).
		dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(175), []byte{0x13, 1, 1, 0x24, 1, 1}))
	url := offer.BootFileName
	if long := offer.Options.Get(dhcpv4.OptionBootfileName); len(long) > 0 {
		url = string(long)
	}
	script := c.get(t, strings.NewReplacer("${uuid}", uuid, "${serial:uristring}", "").Replace(url))
	if !strings.HasSuffix(script, "\nexit 1\n") || strings.Contains(script, "kernel") {
		t.Fatalf("the script does not lead to the disk:\n%s", script)
	}
}

func (c *client) discover(t *testing.T, options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	t.Helper()
	p, err := dhcpv4.NewDiscovery(c.mac, dhcpv4.WithBroadcast(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(options, dhcpv4.OptClientArch(iana.EFI_X86_64)) {
		p.UpdateOption(o)
	}
	return c.ask(t, p, netip.AddrPortFrom(netip.MustParsePrefix(address).Addr(), pxe.PortServer))
}

// load reads the boot loader by TFTP.
func (c *client) load(t *testing.T, name string) {
	t.Helper()
	tc, err := tftp.NewClient(netip.AddrPortFrom(netip.MustParsePrefix(address).Addr(), 69).String())
	if err != nil {
		t.Fatal(err)
	}
	from, err := tc.Receive(name, "octet")
	if err != nil {
		t.Fatalf("loading %q: %v", name, err)
	}
	var got bytes.Buffer
	if _, err := from.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), read(t, c.lab.images+"/"+name)) {
		t.Fatalf("loading %q: %d bytes, %v", name, got.Len(), err)
	}
}

// get asks again when it was too fast: pxed lets one address ask so often a second.
func (c *client) get(t *testing.T, url string) string {
	t.Helper()
	for {
		status, text := c.try(t, url)
		switch status {
		case http.StatusOK:
			return text
		case http.StatusTooManyRequests:
			time.Sleep(time.Second)
		default:
			t.Fatalf("%s: %d: %s", url, status, text)
		}
	}
}

func (c *client) try(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return resp.StatusCode, string(text)
}
