package pxe

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
)

// Client is what a packet says about the machine that sent it.
type Client struct {
	MAC         cluster.MAC // empty when the hardware is not Ethernet
	Type        dhcpv4.MessageType
	Arch        Arch // option 93; meaningful when HasArch
	HasArch     bool
	Firmware    Firmware
	IPXE        bool       // the second stage: iPXE is asking, whoever loaded it
	HTTP        bool       // iPXE says that it speaks HTTP
	UUID        string     // option 97, as dmidecode prints it; "" when absent or junk in form
	VendorClass string     // option 60
	UserClass   string     // option 77
	HostName    string     // option 12
	BootItem    []byte     // option 43, PXE_BOOT_ITEM as it stands: which boot server firmware asks for
	Relay       netip.Addr // giaddr; not valid when the machine is on our own wire
}

// The names by which netboot clients call themselves in option 60; what follows a
// colon is detail that differs from firmware to firmware.
const (
	classPXE  = "PXEClient"
	classHTTP = "HTTPClient"
)

// ipxe is the user class of iPXE (option 77).
const ipxe = "iPXE"

// IsPXE reports whether the machine wants to boot from the network. Phones,
// laptops and running systems do not, and neither does a system that only has
// "PXE" somewhere in its vendor class.
func (c Client) IsPXE() bool { return c.Firmware != NoNetboot }

// Classify reads what a packet says about its sender. It never fails: what is
// missing or broken is left at its zero value.
func Classify(p *dhcpv4.DHCPv4) Client {
	c := Client{
		Type:        p.MessageType(),
		VendorClass: text(p.Options[optVendorClass]),
		UserClass:   userClass(p.Options[optUserClass]),
		UUID:        smbiosUUID(p.Options[optUUID]),
		HostName:    text(p.Options[optHostName]),
	}
	if p.HWType == 1 && len(p.ClientHWAddr) == 6 { // Ethernet (RFC 1700)
		c.MAC = cluster.MAC(p.ClientHWAddr.String())
	}
	if relay, ok := netip.AddrFromSlice(p.GatewayIPAddr); ok && !relay.Unmap().IsUnspecified() {
		c.Relay = relay.Unmap()
	}
	if item := suboptions(p.Options[optVendor])[vendorBootItem]; len(item) == 4 {
		c.BootItem = append([]byte{vendorBootItem, 4}, item...)
	}
	features, fromIPXE := p.Options[optIPXE]
	c.IPXE = c.UserClass == ipxe || fromIPXE
	c.HTTP = c.IPXE && suboptions(features)[ipxeHTTP] != nil
	c.Arch, c.HasArch = bestArch(p.Options[optArch])
	c.Firmware = c.firmware()
	return c
}

// firmware tells netboot clients from others by option 60 and their kind by
// option 93: option 60 often names an architecture as well, and often a wrong one.
func (c Client) firmware() Firmware {
	if !c.IPXE && !hasClass(c.VendorClass, classPXE) && !hasClass(c.VendorClass, classHTTP) {
		return NoNetboot
	}
	if !c.HasArch {
		return Unsupported
	}
	return c.Arch.Firmware()
}

func hasClass(value, class string) bool {
	rest, found := strings.CutPrefix(value, class)
	return found && (rest == "" || rest[0] == ':')
}

// text is an option as text: some firmware ends it with NUL.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.ToValidUTF8(string(b), "?")
}

// userClass is option 77. RFC 3004 wants a length before each class; iPXE sends
// its name bare.
func userClass(b []byte) string {
	if len(b) > 1 && int(b[0]) == len(b)-1 {
		return text(b[1:])
	}
	return text(b)
}

// smbiosUUID is option 97 as text. The first three fields stand in little-endian
// order, as in SMBIOS itself (DSP0134 section 7.2.1, RFC 4578 section 2.3).
func smbiosUUID(b []byte) string {
	if len(b) != 17 || b[0] != 0 {
		return ""
	}
	u := b[1:]
	ordered := []byte{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6]}
	s := hex.EncodeToString(append(ordered, u[8:]...))
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
