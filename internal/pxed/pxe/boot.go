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
	b := boot{gave: GaveIPXE, why: client.Arch.String(), class: classPXE, vendor: takeBootFile(), server: c.Server.AsSlice()}
	switch {
	case client.IPXE && client.HTTP:
		b.gave, b.why, b.file = GaveScript, "iPXE asks", ScriptURL(c.HTTP, client)
	case client.Firmware == UEFIHTTP:
		b.class, b.vendor, b.file = classHTTP, nil, c.HTTP+machine.PathArtifacts+c.Boot.UEFI
	case client.Firmware == UEFITFTP:
		b.file = c.Boot.UEFI
	default:
		b.file = c.Boot.BIOS
	}
	if q.Verdict == OwnDisk {
		b.toOwnDisk(client, c)
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
// firmware repeats its DISCOVER for a minute before it tries the next device, and an
// offer without a boot file costs the same.
//
// HTTP boot gets a URL that answers 404, and the firmware goes on at once. Everybody
// else gets iPXE, whose script leaves. A PXE menu with "boot locally" as its only
// item would load nothing; OVMF takes it and leaves in no time, but then spends 85 s
// on PXE over IPv6, which it passes over after iPXE has used the card.
func (b *boot) toOwnDisk(c Client, cfg Config) {
	if c.Firmware == UEFIHTTP {
		b.gave, b.why = GaveOwnDisk, "nothing to do for this machine: HTTP boot is to fail at once"
		b.file = cfg.HTTP + machine.PathArtifacts + OwnDiskName
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

// Script is what iPXE gets that asks by TFTP for the boot loader it already is: the
// network's DHCP server names the loader and knows nothing of iPXE, which prefers its
// word to ours. Given the loader, iPXE would load itself for ever.
func Script(base string, c Client) []byte {
	return []byte("#!ipxe\nchain --replace --autofree " + ScriptURL(base, c) + "\n")
}
