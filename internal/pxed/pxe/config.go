package pxe

import "net/netip"

// Mode is how pxed takes part in DHCP.
type Mode string

// The modes.
const (
	// ModeProxy adds netboot to the network's own DHCP server and hands out no
	// addresses. It is the default.
	ModeProxy Mode = "proxy"
	// ModeDHCP is the only DHCP server of an isolated network.
	ModeDHCP Mode = "dhcp"
)

// Values lists what a Mode may be.
func (Mode) Values() []string { return []string{string(ModeProxy), string(ModeDHCP)} }

// Config is what is told to machines behind one interface.
type Config struct {
	Mode   Mode
	Server netip.Addr // address of the interface: next server, and server identifier
	HTTP   string     // base URL of pxed as these machines reach it, no slash at the end
	Boot   BootFiles
	Lease  LeaseOptions // ModeDHCP only
}

// BootFiles are the boot loaders by their names in the index of the build. The
// names are the same under TFTP, and under HTTP below machine.PathArtifacts.
type BootFiles struct {
	BIOS string
	UEFI string
}

// DefaultBootFiles are iPXE as imagebuild packs it. undionly and snponly drive the
// network card through the firmware that has just proved that it can; ipxe.efi
// brings drivers of its own and is for firmware whose SNP is broken.
func DefaultBootFiles() BootFiles {
	return BootFiles{BIOS: "netboot/ipxe/undionly.kpxe", UEFI: "netboot/ipxe/snponly.efi"}
}

// LeaseOptions are what a lease tells about the network.
type LeaseOptions struct {
	Network netip.Prefix // of the interface
	Router  netip.Addr   // not valid: none is announced
	DNS     []netip.Addr
	NTP     []netip.Addr
	Domain  string
}

// Verdict is what is known about a machine before it has asked for its script.
type Verdict int

// The verdicts. Netboot is for everything that is not certain: the script that
// iPXE then asks for decides, and its default is the machine's own disk.
const (
	Netboot Verdict = iota
	OwnDisk         // nothing is to be done with this machine: let it start what it has
	Ignore          // stay silent, as if pxed were not there
)

// String is the word for logs.
func (v Verdict) String() string {
	switch v {
	case OwnDisk:
		return "own-disk"
	case Ignore:
		return "ignore"
	default:
		return "netboot"
	}
}
