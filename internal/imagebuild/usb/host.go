package usb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Host is where the kernel and udev describe the machine. The zero value is this
// machine; tests set other directories.
type Host struct {
	Sys  string // "" is /sys
	Proc string // "" is /proc
	Dev  string // "" is /dev
	Udev string // "" is /run/udev
	// Open opens a device for writing; nil is the real way.
	Open func(Device) (Target, error)
}

func (h Host) sys(p ...string) string  { return under(h.Sys, "/sys", p) }
func (h Host) proc(p ...string) string { return under(h.Proc, "/proc", p) }
func (h Host) dev(p ...string) string  { return under(h.Dev, "/dev", p) }
func (h Host) udev(p ...string) string { return under(h.Udev, "/run/udev", p) }

func under(root, usual string, p []string) string {
	if root == "" {
		root = usual
	}
	return filepath.Join(append([]string{root}, p...)...)
}

// List returns all block devices but partitions, sorted by name.
func (h Host) List() ([]Device, error) {
	entries, err := os.ReadDir(h.sys("class/block"))
	if err != nil {
		return nil, fmt.Errorf("listing block devices: %w", err)
	}
	uses, err := h.uses()
	if err != nil {
		return nil, fmt.Errorf("listing block devices: %w", err)
	}
	var out []Device
	for _, e := range entries {
		d, err := h.read(e.Name(), uses)
		if errors.Is(err, fs.ErrNotExist) {
			continue // unplugged meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("reading device %s: %w", e.Name(), err)
		}
		if d.Kind != Partition {
			out = append(out, d)
		}
	}
	return out, nil
}

// Find returns the device that path names, through symbolic links such as those
// in /dev/disk/by-id.
func (h Host) Find(path string) (Device, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Device{}, noDevice(fmt.Errorf("looking for the device: %w", err))
	}
	name, err := filepath.Rel(h.dev(), real)
	if _, statErr := os.Stat(h.sys("class/block", filepath.Base(real))); err != nil || strings.Contains(name, "/") || statErr != nil {
		return Device{}, noDevice(fmt.Errorf("%s is not a block device", path))
	}
	uses, err := h.uses()
	if err != nil {
		return Device{}, fmt.Errorf("looking for the device: %w", err)
	}
	d, err := h.read(name, uses)
	if err != nil {
		return Device{}, fmt.Errorf("reading device %s: %w", name, err)
	}
	return d, nil
}

func noDevice(err error) error {
	return exit.With(exit.Usage, diag.WithHint(err, "imagebuild usb --list shows what is plugged in"))
}

// read collects what there is to know about one device.
func (h Host) read(name string, uses uses) (Device, error) {
	dir, err := filepath.EvalSymlinks(h.sys("class/block", name))
	if err != nil {
		return Device{}, err
	}
	d := Device{Name: name, Path: h.dev(name), Parts: []Part{}, InUse: []Use{}}
	if d.Number, err = text(dir, "dev"); err != nil {
		return Device{}, err
	}
	sectors, err := text(dir, "size")
	if err != nil {
		return Device{}, err
	}
	// The kernel counts in 512-byte sectors here whatever the device uses.
	n, err := strconv.ParseInt(sectors, 10, 54)
	if err != nil {
		return Device{}, err
	}
	d.Size = n * 512
	d.SectorSize = 512
	if s, err := strconv.Atoi(optional(dir, "queue/logical_block_size")); err == nil {
		d.SectorSize = s
	}
	d.Kind = kind(dir, name)
	d.Removable = optional(dir, "removable") == "1"
	d.ReadOnly = optional(dir, "ro") == "1"
	d.USB = usbPath.MatchString(dir)
	d.Vendor, d.Model = optional(dir, "device/vendor"), optional(dir, "device/model")
	props := h.properties(d.Number)
	d.Serial = serial(dir, props)
	d.Content = strings.TrimSpace(props["ID_FS_TYPE"] + quoted(props["ID_FS_LABEL"]))
	d.System = uses.system[name]
	return d, h.parts(&d, dir, uses)
}

// usbPath finds a USB root hub in the path of a device: .../usb2/2-1/2-1:1.0/...
var usbPath = regexp.MustCompile(`/usb[0-9]+/`)

func kind(dir, name string) Kind {
	switch {
	case exists(dir, "partition"):
		return Partition
	case exists(dir, "loop") || strings.HasPrefix(name, "loop"):
		return Loop
	case exists(dir, "dm"):
		return Mapped
	case exists(dir, "md"):
		return RAID
	case strings.HasPrefix(name, "sr") || optional(dir, "device/type") == "5": // SCSI type 5 is CD-ROM
		return Optical
	case strings.Contains(dir, "/devices/virtual/"):
		return Virtual
	default:
		return Disk
	}
}

// parts adds the partitions, and how the device and they are in use.
func (h Host) parts(d *Device, dir string, uses uses) error {
	d.InUse = append(d.InUse, uses.of(d.Name, dir)...)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if !e.IsDir() || !exists(sub, "partition") {
			continue
		}
		number := optional(sub, "dev")
		props := h.properties(number)
		sectors, err := strconv.ParseInt(optional(sub, "size"), 10, 54)
		if err != nil {
			return fmt.Errorf("size of %s: %w", e.Name(), err)
		}
		d.Parts = append(d.Parts, Part{
			Name: e.Name(), Size: sectors * 512, Type: props["ID_FS_TYPE"], Label: unescape(props["ID_FS_LABEL_ENC"], props["ID_FS_LABEL"]),
			Title: unescape(props["ID_PART_ENTRY_NAME"], ""),
		})
		d.InUse = append(d.InUse, uses.of(e.Name(), sub)...)
	}
	slices.SortFunc(d.Parts, func(a, b Part) int { return natural(a.Name, b.Name) })
	return nil
}

// natural orders sda2 before sda10.
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// serial is the serial number that is printed on the device or shown by lsblk: of
// the USB device the disk belongs to, else what udev or the driver says. A bridge
// in a case has its own; that is the one on the USB bus.
func serial(dir string, props map[string]string) string {
	for p := dir; usbPath.MatchString(p + "/"); p = filepath.Dir(p) {
		if exists(p, "idVendor") {
			if s := optional(p, "serial"); s != "" {
				return s
			}
			break
		}
	}
	if s := props["ID_SERIAL_SHORT"]; s != "" {
		return s
	}
	if b, err := os.ReadFile(filepath.Join(dir, "device/vpd_pg80")); err == nil && len(b) > 4 {
		return strings.TrimSpace(strings.Trim(string(b[4:]), "\x00")) // SPC-5, 7.7.17: unit serial number page
	}
	if s := optional(dir, "device/serial"); s != "" {
		return s
	}
	return optional(dir, "serial") // virtio
}

// properties reads udev's record of a device, which is absent without udev.
func (h Host) properties(number string) map[string]string {
	out := map[string]string{}
	data, err := os.ReadFile(h.udev("data", "b"+number))
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(key, "E:") {
			out[key[2:]] = value
		}
	}
	return out
}

// unescape decodes udev's \x20, or gives the fallback when there is nothing to decode.
func unescape(s, fallback string) string {
	if s == "" {
		return fallback
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+3 < len(s) && s[i] == '\\' && s[i+1] == 'x' {
			if v, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(" %q", s)
}

// text reads a small file of sysfs.
func text(dir, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(b)), err
}

// optional is text for a file that many devices do not have.
func optional(dir, name string) string {
	s, err := text(dir, name)
	if err != nil {
		return ""
	}
	return s
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
