package inventory

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/inventory/signature"
)

// sectorUnit is the unit of sizes in sysfs, bytes, whatever the disk's sectors are.
const sectorUnit = 512

// maxItems is how many disks or interfaces a report may have.
const maxItems = 64

// noDisk are block devices that cannot hold a system: memory, mappings, optical
// drives, and the boot and key areas of eMMC.
var noDisk = regexp.MustCompile(`^(loop|ram|zram|dm-|md|sr|fd|nbd|mtdblock|mmcblk[0-9]+(boot|rpmb|gp))`)

// Disks lists the disks that the kernel shows below sys, without looking at what is
// on them.
func Disks(sys fs.FS) []machine.Disk {
	return Sources{Sys: sys, Proc: noFiles{}}.disks()
}

// noFiles is a file system without files.
type noFiles struct{}

func (noFiles) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }

func (s Sources) disks() []machine.Disk {
	var out []machine.Disk
	busy := s.busy()
	for _, name := range s.names("block") {
		if noDisk.MatchString(name) {
			continue
		}
		d := s.disk(name)
		if d.Size <= 0 {
			continue // an empty card reader
		}
		d.Busy = clean(s.holder(name, busy))
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b machine.Disk) int { return strings.Compare(a.Name, b.Name) })
	return out[:min(len(out), maxItems)]
}

func (s Sources) disk(name string) machine.Disk {
	dir := path.Join("block", name)
	place := s.place(name)
	d := machine.Disk{
		Name:       name,
		Serial:     s.serial(dir, place),
		WWN:        wwn(s.file(dir, "wwid"), s.file(dir, "device/wwid")),
		Model:      s.model(dir),
		Transport:  transport(name, place),
		Size:       s.number(dir, "size") * sectorUnit,
		Sector:     int(s.number(dir, "queue/logical_block_size")),
		Rotational: s.number(dir, "queue/rotational") == 1,
		Removable:  s.number(dir, "removable") == 1,
		ReadOnly:   s.number(dir, "ro") == 1,
		Boot:       name == s.BootDisk,
	}
	if d.Size <= 0 || s.Open == nil {
		return d
	}
	r, err := s.Open(name)
	if err != nil {
		return d
	}
	defer r.Close()
	d.Content = signature.Probe(r, d.Size, d.Sector)
	for _, c := range d.Content {
		if s.BootPartition != "" && c.Type == signature.Partition && strings.EqualFold(c.UUID, s.BootPartition) {
			d.Boot = true
		}
	}
	return d
}

// place is where the kernel has the disk in its tree of devices.
func (s Sources) place(name string) string {
	target, err := fs.ReadLink(s.Sys, path.Join("block", name))
	if err != nil {
		return ""
	}
	return path.Join("block", target)
}

// transport tells how a disk is attached, from its name and place.
func transport(name, place string) string {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	case strings.HasPrefix(name, "vd"):
		return "virtio"
	case strings.HasPrefix(name, "mmcblk"):
		return "mmc"
	case strings.Contains(place, "/usb"):
		return "usb"
	case strings.Contains(place, "/ata"):
		return "sata"
	}
	return "scsi"
}

// serial is the disk's own number: of virtio and MMC in a file, of NVMe in that of
// the controller, of ATA and SCSI in page 0x80 of its vital product data (SPC-5,
// 7.7.13), of USB bridges that have none in the USB device.
func (s Sources) serial(dir, place string) string {
	for _, file := range []string{"serial", "device/serial"} {
		if v := s.file(dir, file); v != "" {
			return v
		}
	}
	if page, err := fs.ReadFile(s.Sys, path.Join(dir, "device/vpd_pg80")); err == nil && len(page) > 4 {
		if v := clean(string(page[4:])); v != "" {
			return v
		}
	}
	for ; place != "." && place != "" && strings.Contains(place, "/usb"); place = path.Dir(place) {
		if s.exists(place, "idVendor") {
			return s.file(place, "serial")
		}
	}
	return ""
}

// wwn takes the forms that are world wide names. What the kernel shows for disks
// without one is made of model and serial number (t10.).
func wwn(values ...string) string {
	for _, v := range values {
		for _, prefix := range []string{"eui.", "nvme.", "naa.", "0x"} {
			if strings.HasPrefix(v, prefix) {
				return v
			}
		}
	}
	return ""
}

func (s Sources) model(dir string) string {
	if v := s.file(dir, "device/model"); v != "" {
		return v
	}
	return s.file(dir, "device/name") // of MMC
}

// busy maps device numbers to where they are mounted (proc_pid_mountinfo(5)).
func (s Sources) busy() map[string]string {
	out := map[string]string{}
	data, err := fs.ReadFile(s.Proc, "self/mountinfo")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 {
			out[f[2]] = f[4]
		}
	}
	return out
}

// holder names who uses the disk or one of its partitions, or "".
func (s Sources) holder(name string, mounts map[string]string) string {
	dir := path.Join("block", name)
	dirs := []string{dir}
	for _, sub := range s.names(dir) {
		if s.exists(dir, sub, "partition") {
			dirs = append(dirs, path.Join(dir, sub))
		}
	}
	for _, dir := range dirs {
		if at, mounted := mounts[s.file(dir, "dev")]; mounted {
			return at
		}
		if names := s.names(path.Join(dir, "holders")); len(names) > 0 {
			return fmt.Sprintf("%s on %s", strings.Join(names, ", "), path.Base(dir))
		}
	}
	return ""
}
