package pxe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// golden is what is made of every captured packet: who sent it, and what it gets
// from a proxy and from the only DHCP server.
var golden = map[string]struct {
	firmware Firmware
	ipxe     bool
	kind     dhcpv4.MessageType
	class    string // option 60
	proxy    Gave
	dhcp     Gave
	file     string
}{
	"ovmf-discover":              {UEFITFTP, false, dhcpv4.MessageTypeDiscover, "PXEClient:Arch:00007:UNDI:003000", GaveIPXE, GaveIPXE, uefiLoader},
	"ovmf-request":               {UEFITFTP, false, dhcpv4.MessageTypeRequest, "PXEClient:Arch:00007:UNDI:003000", GaveNothing, GaveIPXE, uefiLoader},
	"ovmf-http-discover":         {UEFIHTTP, false, dhcpv4.MessageTypeDiscover, "HTTPClient:Arch:00016:UNDI:003000", GaveIPXE, GaveIPXE, httpLoader},
	"ipxe-snponly-discover":      {UEFITFTP, true, dhcpv4.MessageTypeDiscover, "PXEClient", GaveScript, GaveScript, script + "uefi"},
	"ipxe-snponly-http-discover": {UEFITFTP, true, dhcpv4.MessageTypeDiscover, "PXEClient:Arch:00007:UNDI:003010", GaveScript, GaveScript, script + "uefi"},
	"ipxe-rom-efi-discover":      {UEFITFTP, true, dhcpv4.MessageTypeDiscover, "PXEClient:Arch:00007:UNDI:003010", GaveScript, GaveScript, script + "uefi"},
	"ipxe-rom-efi-request":       {UEFITFTP, true, dhcpv4.MessageTypeRequest, "PXEClient:Arch:00007:UNDI:003010", GaveNothing, GaveScript, script + "uefi"},
	"ipxe-rom-bios-discover":     {BIOS, true, dhcpv4.MessageTypeDiscover, "PXEClient:Arch:00000:UNDI:002001", GaveScript, GaveScript, script + "bios"},
	"dhclient-discover":          {NoNetboot, false, dhcpv4.MessageTypeDiscover, "", GaveNothing, GaveLease, ""},
	"udhcpc-discover":            {NoNetboot, false, dhcpv4.MessageTypeDiscover, "udhcp 1.35.0", GaveNothing, GaveLease, ""},
}

func TestCapturedPackets(t *testing.T) {
	for name, want := range golden {
		t.Run(name, func(t *testing.T) {
			q := request(packet(t, name))
			c := q.Client
			if c.Firmware != want.firmware || c.IPXE != want.ipxe || c.Type != want.kind || c.VendorClass != want.class {
				t.Errorf("classified as %+v", c)
			}
			if c.IsPXE() && (c.MAC != machineMAC || c.UUID != machineUUID || c.IPXE != c.HTTP) {
				t.Errorf("classified as %+v", c)
			}
			proxy := Decide(q, config(ModeProxy))
			if proxy.Gave != want.proxy {
				t.Errorf("a proxy gives %s: %s", proxy.Gave, proxy.Why)
			}
			if proxy.Reply != nil {
				wellFormed(t, q, proxy, want.file)
			}
			q.Grant = Grant{Kind: GrantAddress, Addr: netip.MustParseAddr("10.77.0.100"), Time: time.Hour, Host: "n1", Why: "leased"}
			full := Decide(q, config(ModeDHCP))
			if full.Gave != want.dhcp || bootFile(full.Reply) != want.file {
				t.Errorf("the only server gives %s %q: %s", full.Gave, bootFile(full.Reply), full.Why)
			}
			leased(t, full.Reply)
		})
	}
}

func bootFile(p *dhcpv4.DHCPv4) string {
	if p.BootFileName != "" {
		return p.BootFileName
	}
	return p.BootFileNameOption()
}

// wellFormed is pitfall and specification in one: what an offer of a proxy must
// have, and must not have, as it is read from the wire.
func wellFormed(t *testing.T, q Request, d Decision, file string) {
	t.Helper()
	r, err := dhcpv4.FromBytes(d.Reply.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	class, vendor := "PXEClient", "\x06\x01\x08\xff"
	if q.Client.Firmware == UEFIHTTP {
		class, vendor = "HTTPClient", ""
	}
	switch {
	case r.OpCode != dhcpv4.OpcodeBootReply || r.TransactionID != q.Packet.TransactionID || r.ClientHWAddr.String() != q.Packet.ClientHWAddr.String():
		t.Error("not a reply to this request")
	case r.MessageType() != dhcpv4.MessageTypeOffer:
		t.Errorf("a proxy sent %s", r.MessageType())
	case !r.YourIPAddr.IsUnspecified():
		t.Errorf("a proxy gave address %s", r.YourIPAddr)
	case r.ServerIPAddr.String() != "10.77.0.1" || r.ServerIdentifier().String() != "10.77.0.1":
		t.Errorf("server %s, identifier %s", r.ServerIPAddr, r.ServerIdentifier())
	case r.ClassIdentifier() != class || string(r.Options[optVendor]) != vendor:
		t.Errorf("class %q, option 43 %x", r.ClassIdentifier(), r.Options[optVendor])
	case string(r.Options[optUUID]) != string(q.Packet.Options[optUUID]):
		t.Error("the UUID did not come back")
	case bootFile(r) != file:
		t.Errorf("boot file %q", bootFile(r))
	case d.To != Broadcast():
		t.Errorf("sent to %v", d.To)
	}
	for _, code := range []uint8{optSubnetMask, optRouter, optDNS, optHostName, optDomain, optBroadcast, optNTP, optLeaseTime, optRenewal, optRebinding} {
		if _, ok := r.Options[code]; ok {
			t.Errorf("a proxy sent option %d", code)
		}
	}
}

// leased checks a reply with an address, as it is read from the wire.
func leased(t *testing.T, reply *dhcpv4.DHCPv4) {
	t.Helper()
	r, err := dhcpv4.FromBytes(reply.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		r.YourIPAddr.String(), r.SubnetMask().String(), r.Router()[0].String(), r.DNS()[1].String(), r.NTPServers()[0].String(), r.DomainName(),
		r.HostName(), r.IPAddressLeaseTime(0).String(), r.IPAddressRenewalTime(0).String(), r.IPAddressRebindingTime(0).String(),
		r.ServerIdentifier().String(), netip.AddrFrom4([4]byte(r.Options[optBroadcast])).String(),
	}
	want := "10.77.0.100 ffffff00 10.77.0.2 10.77.0.3 10.77.0.2 lab.example n1 1h0m0s 30m0s 52m30s 10.77.0.1 10.77.0.255"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestNobodyAnswersAnswers(t *testing.T) {
	for _, mode := range []Mode{ModeProxy, ModeDHCP} {
		q := request(packet(t, "dnsmasq-offer"))
		q.Grant = Grant{Kind: GrantAddress, Addr: netip.MustParseAddr("10.77.0.100")}
		if d := Decide(q, config(mode)); d.Reply != nil {
			t.Errorf("%s: an OFFER of dnsmasq got an answer", mode)
		}
	}
}
