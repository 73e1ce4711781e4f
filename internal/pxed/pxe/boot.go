package pxe

import (
	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/machine"
)

// boot is what a netboot client is given to boot.
type boot struct {
	gave   Gave
	why    string
	file   string // name under TFTP, or URL
	class  string // option 60 of the answer: which kind of answer this is
	vendor []byte // option 43 of the answer
	server []byte // siaddr
}

// bootOf decides what a netboot client boots. The result gave nothing when there
// is nothing that the machine could run.
func bootOf(q Request, c Config) boot {
	client := q.Client
	if client.Firmware == Unsupported {
		return boot{gave: GaveNothing, why: unsupported(client)}
	}
	b := boot{class: classPXE, vendor: takeBootFile(), server: c.Server.AsSlice()}
	switch {
	case client.IPXE && client.HTTP:
		b.gave, b.why, b.file = GaveScript, "iPXE asks", ScriptURL(c.HTTP, client)
	case q.Verdict == OwnDisk:
		b.toOwnDisk(client, c)
	case client.Firmware == UEFIHTTP:
		b.gave, b.why, b.file = GaveIPXE, client.Arch.String(), c.HTTP+machine.PathArtifacts+c.Boot.UEFI
		b.class, b.vendor = classHTTP, nil
	case client.Firmware == UEFITFTP:
		b.gave, b.why, b.file = GaveIPXE, client.Arch.String(), c.Boot.UEFI
	default:
		b.gave, b.why, b.file = GaveIPXE, client.Arch.String(), c.Boot.BIOS
	}
	if client.IPXE && !client.HTTP {
		b.why = "an iPXE that cannot speak HTTP is replaced"
	}
	return b
}

func unsupported(c Client) string {
	if !c.HasArch {
		return "netboot client without option 93: its architecture is unknown"
	}
	return "no boot loader for " + c.Arch.String()
}

// OwnDiskName is the boot file that firmware is named when it is to start its own
// disk by HTTP boot: there is no such file, on purpose.
const OwnDiskName = "boot-your-own-disk"

// toOwnDisk answers a machine that has nothing to do here. Silence would be slow:
// firmware repeats its DISCOVER for a minute and more before it tries the next
// device, and an offer without a boot file costs the same.
//
//   - UEFI by TFTP gets a PXE menu with "boot locally" as its only item and no
//     time to choose: it loads nothing and goes on to its next device at once.
//   - UEFI by HTTP gets a URL that answers 404, and goes on as well.
//   - BIOS gets iPXE like everybody else: option ROMs differ too much in what
//     they make of a menu, and iPXE's plain exit is understood by all.
func (b *boot) toOwnDisk(c Client, cfg Config) {
	b.gave, b.why = GaveOwnDisk, "nothing to do for this machine"
	switch c.Firmware {
	case UEFITFTP:
		b.vendor = menuOfOwnDisk()
	case UEFIHTTP:
		b.class, b.vendor, b.file = classHTTP, nil, cfg.HTTP+machine.PathArtifacts+OwnDiskName
	default:
		b.gave, b.file = GaveIPXE, cfg.Boot.BIOS
		b.why += "; BIOS leaves by iPXE's script"
	}
}

// maxFileField is how much fits into the header's file field, ended by NUL.
const maxFileField = 127

// write puts the boot information into a reply. The name goes into the header's
// field, which every client reads; option 67 is for HTTP boot, which wants it, and
// for what is too long. Old option ROMs choke on option 67.
func (b boot) write(r *dhcpv4.DHCPv4, c Client) {
	r.ServerIPAddr = b.server
	r.BootFileName = b.file
	if b.class == classHTTP || len(b.file) > maxFileField {
		r.BootFileName = ""
		r.Options[optBootFile] = []byte(b.file)
	}
	r.Options[optVendorClass] = []byte(b.class)
	if len(b.vendor) > 0 {
		// PXE 2.1: who asked for one boot item hears which one this is.
		r.Options[optVendor] = append(c.BootItem, b.vendor...)
	}
}

// ScriptURL is where iPXE asks for its script. What is in ${} iPXE fills in
// itself; the names are those of machine.PathBoot, and firmware is as in
// machine.Firmware.Mode.
func ScriptURL(base string, c Client) string {
	mode := "uefi"
	if c.Firmware == BIOS {
		mode = "bios"
	}
	return base + machine.PathBoot + "?mac=" + string(c.MAC) + "&uuid=${uuid}&serial=${serial:uristring}&firmware=" + mode
}
