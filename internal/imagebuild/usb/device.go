// Package usb writes the disk image of a build to a USB stick, and to nothing
// else: it decides from what the kernel says about a device whether it may be
// written, writes it so that it cannot boot until it is complete, and reads back
// every byte from the device itself.
package usb

import (
	"fmt"
	"strings"
)

// Kind is what sort of block device something is.
type Kind string

// The kinds of block devices. Only whole disks are ever written.
const (
	Disk      Kind = "disk"
	Partition Kind = "partition"
	Loop      Kind = "loop device"
	Mapped    Kind = "device-mapper volume" // LVM, LUKS, multipath
	RAID      Kind = "md array"
	Optical   Kind = "optical drive"
	Virtual   Kind = "virtual device" // ram, zram, nbd
)

// Device is a block device as the kernel and udev describe it. Sizes are in bytes.
type Device struct {
	Name       string `json:"name"` // as in /sys/class/block: "sdb"
	Path       string `json:"path"` // "/dev/sdb"
	Number     string `json:"number"`
	Kind       Kind   `json:"kind"`
	Removable  bool   `json:"removable"` // the medium is
	USB        bool   `json:"usb"`       // hangs on a USB bus
	ReadOnly   bool   `json:"readOnly"`
	Size       int64  `json:"size"`
	SectorSize int    `json:"sectorSize"` // logical
	Vendor     string `json:"vendor,omitempty"`
	Model      string `json:"model,omitempty"`
	Serial     string `json:"serial,omitempty"`
	Content    string `json:"content,omitempty"` // file system on the whole device: "iso9660 \"LABEL\""
	Parts      []Part `json:"partitions"`
	InUse      []Use  `json:"inUse"` // of the device and its partitions
	System     bool   `json:"system"`
}

// Part is a partition of a device.
type Part struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	Type  string `json:"type,omitempty"`  // file system
	Label string `json:"label,omitempty"` // of the file system
	Title string `json:"title,omitempty"` // of the partition
}

// Use is why a device or partition must not be touched now.
type Use struct {
	Name string `json:"name"` // of the device or partition
	How  string `json:"how"`  // "is mounted on /mnt", "is swap", "is held by dm-0"
}

// Request is what the person asked for.
type Request struct {
	Serial     string // typed off the stick or from usb --list
	Need       int64  // bytes of the image
	SectorSize int    // of the image
}

// Check decides whether the device may be written, and returns every reason
// against it. It looks at nothing but its arguments.
func Check(d Device, r Request) []string {
	refusals := Candidate(d)
	refuse := func(format string, args ...any) { refusals = append(refusals, fmt.Sprintf(format, args...)) }
	switch {
	case d.Serial == "":
		refuse("it has no serial number, so that it cannot be told from another device")
	case r.Serial == "":
		refuse("no serial number was given to confirm it")
	case r.Serial != d.Serial:
		refuse("its serial number is %s, not %s", d.Serial, r.Serial)
	}
	return append(refusals, unfit(d, r)...)
}

// unfit returns the reasons why a content does not fit on a device.
func unfit(d Device, r Request) []string {
	var refusals []string
	if d.Size < r.Need {
		refusals = append(refusals, fmt.Sprintf("it has %s, the image needs %s", bytesText(d.Size), bytesText(r.Need)))
	}
	if d.SectorSize != r.SectorSize {
		refusals = append(refusals, fmt.Sprintf("its sectors have %d bytes, those of the image %d", d.SectorSize, r.SectorSize))
	}
	return refusals
}

// Candidate returns the reasons against a device that hold for every image.
func Candidate(d Device) []string {
	var refusals []string
	refuse := func(format string, args ...any) { refusals = append(refusals, fmt.Sprintf(format, args...)) }
	if d.Kind != Disk {
		refuse("it is not a whole disk: %s", d.Kind)
	}
	if !d.Removable && !d.USB {
		refuse("it is neither removable nor on a USB bus")
	}
	if d.System {
		refuse("the running system is on it")
	}
	if d.ReadOnly {
		refuse("it is read-only (a switch on the stick, or the end of its life)")
	}
	if d.Size <= 0 {
		refuse("it has no medium")
	}
	for _, u := range d.InUse {
		refuse("%s %s", u.Name, u.How)
	}
	return refusals
}

// Title is the device in a few words: vendor, model and size.
func (d Device) Title() string {
	words := strings.Fields(d.Vendor + " " + d.Model)
	if len(words) == 0 {
		words = []string{"unnamed device"}
	}
	return strings.Join(words, " ") + ", " + bytesText(d.Size)
}

// bytesText writes a size as it is printed on devices, in powers of ten.
func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}
