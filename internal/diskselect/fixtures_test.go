package diskselect

import (
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// gb is a size as disks are sold by.
const gb = int64(1e9)

// nvme is a blank disk of a mini-PC.
func nvme(name, serial string, size int64) machine.Disk {
	return machine.Disk{Name: name, Serial: serial, WWN: "eui.00253" + serial, Model: "Samsung SSD 980 1TB", Transport: "nvme", Size: size, Sector: 512}
}

func sata(name, serial string, size int64) machine.Disk {
	return machine.Disk{Name: name, Serial: serial, WWN: "0x5000c500" + serial, Model: "CT500MX500SSD1", Transport: "sata", Size: size, Sector: 512}
}

func stick(name string) machine.Disk {
	return machine.Disk{Name: name, Serial: "4C530001", Model: "Ultra Fit", Transport: "usb", Size: 32 * gb, Sector: 512, Removable: true,
		Content: []machine.Signature{{Type: "dos"}, {Partition: 1, Type: "vfat", Label: "STICK"}}}
}

func with(d machine.Disk, change func(*machine.Disk)) machine.Disk {
	change(&d)
	return d
}

func containing(d machine.Disk, content ...machine.Signature) machine.Disk {
	d.Content = append([]machine.Signature{{Type: "gpt"}}, content...)
	return d
}

func part(number int, kind, label string) machine.Signature {
	return machine.Signature{Partition: number, Type: kind, Label: label}
}

// windows is what a new mini-PC comes with.
func windows(d machine.Disk) machine.Disk {
	return containing(d, part(1, "vfat", "SYSTEM"), part(3, "ntfs", "Windows"), part(4, "ntfs", "Recovery"))
}

// system is an earlier install: partitions with their names, and what is in them.
func system(d machine.Disk) machine.Disk {
	return containing(d, part(1, "partition", "slipway-esp"), part(1, "vfat", "SLIPWAY-ESP"), part(2, "partition", "slipway-a"), part(2, "squashfs", ""),
		part(3, "partition", "slipway-b"), part(4, "partition", "CIDATA"), part(4, "vfat", "CIDATA"), part(5, "partition", "slipway-state"), part(5, "ext4", "slipway-state"))
}

// longhorn is a data disk in use.
func longhorn(d machine.Disk) machine.Disk {
	return containing(d, part(1, "partition", "slipway-data"), part(1, "ext4", "slipway-data"))
}

func bySerial(s string) cluster.Selector { return cluster.Selector{Serial: s} }

func keep(name string, want cluster.Selector) machine.DataOrder {
	return machine.DataOrder{Name: name, Disk: want, Policy: cluster.PolicyKeep}
}

func wipe(name string, want cluster.Selector) machine.DataOrder {
	return machine.DataOrder{Name: name, Disk: want, Policy: cluster.PolicyWipe}
}
