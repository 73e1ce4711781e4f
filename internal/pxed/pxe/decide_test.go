package pxe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

func TestPortPXE(t *testing.T) {
	for _, mode := range []Mode{ModeProxy, ModeDHCP} {
		q := request(packet(t, "ovmf-request"))
		q.Packet.ClientIPAddr = netip.MustParseAddr("10.77.0.109").AsSlice()
		q.Packet.Options[optVendor] = []byte{vendorBootItem, 4, 0, 0, 0, 0, optionEnd}
		q.Client = Classify(q.Packet)
		q.Port, q.From = PortPXE, netip.MustParseAddrPort("10.77.0.109:4011")
		d := Decide(q, config(mode))
		r := d.Reply
		switch {
		case r == nil || r.MessageType() != dhcpv4.MessageTypeAck || bootFile(r) != uefiLoader:
			t.Errorf("%s: %+v", mode, d)
		case d.To.Addr != q.From || d.To.MAC != "":
			t.Errorf("%s: sent to %v", mode, d.To)
		case string(r.Options[optVendor]) != "\x47\x04\x00\x00\x00\x00\x06\x01\x08\xff":
			t.Errorf("%s: option 43 %x", mode, r.Options[optVendor])
		case r.YourIPAddr != nil || r.Options[optLeaseTime] != nil:
			t.Errorf("%s: a lease on port 4011", mode)
		}
	}
}

func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		from    string
		change  func(*Request)
		notable bool
		why     string
	}{
		"a machine to be ignored": {"ovmf-discover", func(q *Request) { q.Verdict = Ignore }, false, "told to ignore"},
		"a running system":        {"dhclient-discover", func(*Request) {}, false, "no netboot client"},
		"PXE somewhere in class":  {"ovmf-discover", func(q *Request) { q.Packet.Options[optVendorClass] = []byte("PXE UROOT") }, false, "no netboot client"},
		"a class that goes on":    {"ovmf-discover", func(q *Request) { q.Packet.Options[optVendorClass] = []byte("PXEClients") }, false, "no netboot client"},
		"a lease":                 {"ovmf-request", func(*Request) {}, false, "REQUEST belongs to the DHCP server"},
		"DISCOVER on port 4011":   {"ovmf-discover", func(q *Request) { q.Port = PortPXE }, false, "DISCOVER on port 4011"},
		"a phone on port 4011":    {"dhclient-discover", func(q *Request) { q.Port = PortPXE }, false, "no netboot client"},
		"BOOTP":                   {"ovmf-discover", func(q *Request) { delete(q.Packet.Options, optMessageType) }, false, "BOOTP"},
		"no Ethernet":             {"ovmf-discover", func(q *Request) { q.Packet.HWType = 32 }, false, "no Ethernet"},
		"a short address":         {"ovmf-discover", func(q *Request) { q.Packet.ClientHWAddr = q.Packet.ClientHWAddr[:5] }, false, "no Ethernet"},
		"no architecture":         {"ovmf-discover", func(q *Request) { delete(q.Packet.Options, optArch) }, true, "its architecture is unknown"},
		"ARM":                     {"ovmf-discover", func(q *Request) { q.Packet.Options[optArch] = []byte{0, 11} }, true, "no boot loader for ARM UEFI (64 bit)"},
		"32 bits":                 {"ovmf-discover", func(q *Request) { q.Packet.Options[optArch] = []byte{0, 6} }, true, "no boot loader for x86 UEFI (32 bit)"},
		"from the future":         {"ovmf-discover", func(q *Request) { q.Packet.Options[optArch] = []byte{1, 2} }, true, "no boot loader for architecture 258"},
	} {
		q := request(packet(t, c.from))
		c.change(&q)
		q.Client = Classify(q.Packet)
		d := Decide(q, config(ModeProxy))
		if d.Reply != nil || d.Gave != GaveNothing || d.Notable != c.notable || !strings.Contains(d.Why, c.why) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestArchitectures(t *testing.T) {
	for value, want := range map[string]string{
		"\x00\x00": "netboot/ipxe/undionly.kpxe", "\x00\x07": uefiLoader, "\x00\x09": uefiLoader, "\x00\x10": httpLoader,
		"\x00\x06\x00\x07": uefiLoader, // a firmware that can do both
	} {
		q := request(packet(t, "ovmf-discover"))
		q.Packet.Options[optArch] = []byte(value)
		q.Client = Classify(q.Packet)
		if d := Decide(q, config(ModeProxy)); d.Gave != GaveIPXE || bootFile(d.Reply) != want {
			t.Errorf("%x: %+v", value, d)
		}
	}
}

// A machine without work: HTTP boot is made to fail at once, all others leave by
// iPXE's script.
func TestOwnDisk(t *testing.T) {
	for name, want := range map[string]string{
		"ovmf-discover": uefiLoader, "ovmf-http-discover": "http://10.77.0.1:8080/artifacts/boot-your-own-disk", "ipxe-snponly-discover": script + "uefi",
	} {
		q := request(packet(t, name))
		q.Verdict = OwnDisk
		d := Decide(q, config(ModeProxy))
		if bootFile(d.Reply) != want {
			t.Errorf("%s: %+v", name, d)
		}
		if len(d.Reply.ServerIPAddr) == 0 {
			t.Errorf("%s: no next server", name)
		}
	}
}

func TestIPXEWithoutHTTPIsReplaced(t *testing.T) {
	q := request(packet(t, "ipxe-rom-bios-discover"))
	delete(q.Packet.Options, optIPXE)
	q.Client = Classify(q.Packet)
	if d := Decide(q, config(ModeProxy)); d.Gave != GaveIPXE || bootFile(d.Reply) != "netboot/ipxe/undionly.kpxe" || !strings.Contains(d.Why, "replaced") {
		t.Errorf("got %+v", d)
	}
}

func TestUserClassInBothForms(t *testing.T) {
	for _, value := range []string{"iPXE", "\x04iPXE", "iPXE\x00"} {
		p := packet(t, "ipxe-snponly-discover")
		p.Options[optUserClass] = []byte(value)
		if c := Classify(p); !c.IPXE || c.UserClass != "iPXE" {
			t.Errorf("%q: %+v", value, c)
		}
	}
}

func TestUnsupportedMachineGetsItsLease(t *testing.T) {
	q := request(packet(t, "ovmf-discover"))
	q.Packet.Options[optArch] = []byte{0, 11}
	q.Client = Classify(q.Packet)
	q.Grant = Grant{Kind: GrantAddress, Addr: netip.MustParseAddr("10.77.0.100"), Time: time.Hour}
	if d := Decide(q, config(ModeDHCP)); d.Gave != GaveLease || !d.Notable || bootFile(d.Reply) != "" {
		t.Errorf("got %+v", d)
	}
}

func TestInform(t *testing.T) {
	q := request(packet(t, "dhclient-discover"))
	q.Packet.Options[optMessageType] = []byte{byte(dhcpv4.MessageTypeInform)}
	q.Packet.ClientIPAddr = netip.MustParseAddr("10.77.0.50").AsSlice()
	q.Client, q.Grant = Classify(q.Packet), Grant{Kind: GrantInform}
	d := Decide(q, config(ModeDHCP))
	if d.Reply.MessageType() != dhcpv4.MessageTypeAck || d.Reply.YourIPAddr != nil || d.Reply.Options[optLeaseTime] != nil || d.Reply.Options[optRouter] == nil {
		t.Errorf("got %s", d.Reply.Summary())
	}
	if d.To.Addr.String() != "10.77.0.50:68" {
		t.Errorf("sent to %v", d.To)
	}
}

// RFC 2131 section 4.1.
func TestDestinations(t *testing.T) {
	grant := Grant{Kind: GrantAddress, Addr: netip.MustParseAddr("10.77.0.100"), Time: time.Hour}
	nak := Grant{Kind: GrantNak, Why: "not yours"}
	for name, c := range map[string]struct {
		grant  Grant
		change func(*dhcpv4.DHCPv4)
		addr   string
		mac    string
	}{
		"broadcast asked for":  {grant, func(p *dhcpv4.DHCPv4) { p.SetBroadcast() }, "255.255.255.255:68", ""},
		"no address yet":       {grant, func(p *dhcpv4.DHCPv4) { p.SetUnicast() }, "10.77.0.100:68", machineMAC},
		"renewing":             {grant, func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = []byte{10, 77, 0, 100} }, "10.77.0.100:68", ""},
		"refused":              {nak, func(p *dhcpv4.DHCPv4) { p.SetUnicast() }, "255.255.255.255:68", ""},
		"behind a relay":       {grant, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = []byte{10, 9, 0, 1} }, "10.9.0.1:67", ""},
		"refused past a relay": {nak, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = []byte{10, 9, 0, 1}; p.SetUnicast() }, "10.9.0.1:67", ""},
	} {
		q := request(packet(t, "ovmf-request"))
		c.change(q.Packet)
		q.Packet.Options[optRelay] = []byte{1, 1, 7}
		q.Client, q.Grant = Classify(q.Packet), c.grant
		d := Decide(q, config(ModeDHCP))
		if d.To.Addr.String() != c.addr || string(d.To.MAC) != c.mac {
			t.Errorf("%s: to %v", name, d.To)
		}
		if string(d.Reply.Options[optRelay]) != "\x01\x01\x07" {
			t.Errorf("%s: the relay's option did not come back", name)
		}
		if q.Client.Relay.IsValid() && c.grant.Kind == GrantNak && !d.Reply.IsBroadcast() {
			t.Errorf("%s: the relay is not told to broadcast", name)
		}
	}
}

func TestLongURLGoesIntoAnOption(t *testing.T) {
	c := config(ModeProxy)
	c.HTTP = "http://a-rather-long-name-of-a-host.example.org:8080"
	d := Decide(request(packet(t, "ipxe-snponly-discover")), c)
	if d.Reply.BootFileName != "" || !strings.HasSuffix(d.Reply.BootFileNameOption(), "firmware=uefi") {
		t.Errorf("file %q, option %q", d.Reply.BootFileName, d.Reply.BootFileNameOption())
	}
}
