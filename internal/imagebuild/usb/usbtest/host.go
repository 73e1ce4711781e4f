// Package usbtest makes the directories in which a kernel and udev describe a
// machine, for tests that must not depend on the one they run on.
package usbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway/slipway/internal/imagebuild/usb"
)

// Machine is a machine under a directory: sys, proc, dev and udev.
type Machine struct{ Dir string }

// New makes an empty machine in dir.
func New(dir string) (Machine, error) {
	m := Machine{Dir: dir}
	for _, d := range []string{"sys/class/block", "sys/dev/block", "proc/self", "dev", "udev/data"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return m, err
		}
	}
	return m, m.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
}

// Host is the machine as usb sees it.
func (m Machine) Host() usb.Host {
	at := func(d string) string { return filepath.Join(m.Dir, d) }
	return usb.Host{Sys: at("sys"), Proc: at("proc"), Dev: at("dev"), Udev: at("udev")}
}

// Device adds a block device whose directory is path below sys/devices. Files are
// its attributes, by name; "dev" and "size" (in 512-byte sectors) are needed.
func (m Machine) Device(path string, files map[string]string) error {
	dir := filepath.Join("sys/devices", path)
	for name, content := range files {
		if err := m.write(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	name := filepath.Base(path)
	for _, link := range []string{"class/block/" + name, "dev/block/" + strings.TrimSpace(files["dev"])} {
		if err := os.Symlink("../../devices/"+path, filepath.Join(m.Dir, "sys", link)); err != nil {
			return err
		}
	}
	return m.write(filepath.Join("dev", name), "")
}

// Attribute sets an attribute of any directory below sys/devices.
func (m Machine) Attribute(path, content string) error {
	return m.write(filepath.Join("sys/devices", path), content)
}

// Udev sets udev's record of a device number.
func (m Machine) Udev(number string, properties map[string]string) error {
	var b strings.Builder
	for k, v := range properties {
		fmt.Fprintf(&b, "E:%s=%s\n", k, v)
	}
	return m.write("udev/data/b"+number, b.String())
}

// Mount adds a line of mountinfo.
func (m Machine) Mount(number, point, source string) error {
	return m.add("proc/self/mountinfo", fmt.Sprintf("30 1 %s / %s rw - ext4 %s rw\n", number, point, source))
}

// Swap adds a swap device.
func (m Machine) Swap(path string) error {
	return m.add("proc/swaps", path+" partition 1 0 -2\n")
}

// Typical adds what a workstation has: an NVMe disk with the system in LVM, a
// data disk, a CD drive, and one USB stick, sdb, with old content.
func (m Machine) Typical(stickSize int64) error {
	const nvme, sata, stick = "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", "pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda", "pci0000:00/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb"
	disk := func(number string, bytes int64, removable string) map[string]string {
		return map[string]string{"dev": number + "\n", "size": fmt.Sprintf("%d\n", bytes/512), "removable": removable + "\n", "ro": "0\n", "queue/logical_block_size": "512\n"}
	}
	part := func(number string, bytes int64) map[string]string {
		return map[string]string{"dev": number + "\n", "size": fmt.Sprintf("%d\n", bytes/512), "partition": "1\n"}
	}
	for _, step := range []func() error{
		func() error { return m.Device(nvme, disk("259:0", 512e9, "0")) },
		func() error { return m.Device(nvme+"/nvme0n1p1", part("259:1", 1e9)) },
		func() error { return m.Device(nvme+"/nvme0n1p2", part("259:2", 511e9)) },
		func() error { return m.Attribute(nvme+"/nvme0n1p2/holders/dm-0", "") },
		func() error { return m.Device("virtual/block/dm-0", disk("253:0", 400e9, "0")) },
		func() error { return m.Attribute("virtual/block/dm-0/dm/name", "vg-root") },
		func() error { return m.Attribute("virtual/block/dm-0/slaves/nvme0n1p2", "") },
		func() error { return m.Mount("253:0", "/", "/dev/mapper/vg-root") },
		func() error { return m.Mount("259:1", "/boot/efi", "/dev/nvme0n1p1") },
		func() error { return m.Udev("259:0", map[string]string{"ID_SERIAL_SHORT": "S4EVNX0M"}) },
		func() error { return m.Device(sata, disk("8:0", 2e12, "0")) },
		func() error { return m.Attribute(sata+"/device/vpd_pg80", "\x00\x80\x00\x08WD-12345") },
		func() error {
			return m.Device("pci0000:00/ata2/host1/target1:0:0/1:0:0:0/block/sr0", disk("11:0", 0, "1"))
		},
		func() error { return m.Device("virtual/block/loop0", disk("7:0", 1e6, "0")) },
		func() error { return m.Device(stick, disk("8:16", stickSize, "1")) },
		func() error { return m.Device(stick+"/sdb1", part("8:17", stickSize/2)) },
		func() error { return m.Device(stick+"/sdb10", part("8:26", stickSize/4)) },
		func() error { return m.Device(stick+"/sdb2", part("8:18", stickSize/4)) },
		func() error { return m.Attribute(stick+"/device/vendor", "SanDisk \n") },
		func() error { return m.Attribute(stick+"/device/model", "Ultra Fit       \n") },
		func() error { return m.Attribute("pci0000:00/usb2/2-1/idVendor", "0781\n") },
		func() error { return m.Attribute("pci0000:00/usb2/2-1/serial", "4C530001\n") },
		func() error { return m.Attribute("pci0000:00/usb2/idVendor", "1d6b\n") },
		func() error { return m.Attribute("pci0000:00/usb2/serial", "0000:00:14.0\n") },
		func() error {
			return m.Udev("8:17", map[string]string{"ID_FS_TYPE": "vfat", "ID_FS_LABEL": "HOLIDAY_2019", "ID_FS_LABEL_ENC": `HOLIDAY\x202019`, "ID_PART_ENTRY_NAME": `Basic\x20data`})
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("typical machine: %w", err)
		}
	}
	return nil
}

func (m Machine) write(name, content string) error {
	p := filepath.Join(m.Dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p, []byte(content), 0o644)
}

func (m Machine) add(name, line string) error {
	f, err := os.OpenFile(filepath.Join(m.Dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	return f.Close()
}
