// Package machine is the contract between a machine that netboots or starts from
// a stick (nodeinit) and who decides about it (pxed, or the bundle on the stick):
// the inventory report, the ticket, progress, the receipt, and the life of a
// machine as a state machine. It decides and describes; it does no I/O.
package machine

import "time"

// ReportFormat is the version of the report.
const ReportFormat = "slipway-report/1"

// Report is what a machine says about itself. Sizes are in bytes; a value that
// could not be read is zero.
type Report struct {
	Format   string    `json:"format"`
	Identity Identity  `json:"identity"`
	Firmware Firmware  `json:"firmware"`
	CPU      CPU       `json:"cpu"`
	Memory   int64     `json:"memory"`
	Disks    []Disk    `json:"disks"`
	NICs     []NIC     `json:"nics"`
	Clock    time.Time `json:"clock"` // of the machine, when the report was made
}

// Identity is what a machine can be recognised by. Values are as SMBIOS has them
// (DMTF DSP0134, types 1 and 2); many vendors leave junk in them, see Junk.
type Identity struct {
	Vendor      string `json:"vendor,omitempty"`
	Product     string `json:"product,omitempty"`
	Serial      string `json:"serial,omitempty"`
	UUID        string `json:"uuid,omitempty"`
	BoardSerial string `json:"boardSerial,omitempty"`
}

// Firmware is how the machine was started.
type Firmware struct {
	Mode       string `json:"mode"` // "uefi" or "bios"
	Vendor     string `json:"vendor,omitempty"`
	Version    string `json:"version,omitempty"`
	SecureBoot bool   `json:"secureBoot,omitempty"`
	TPM        string `json:"tpm,omitempty"` // "1.2", "2.0" or ""
}

// CPU is the processor. Flags holds those of the kernel's list that matter here:
// vmx, svm, aes, avx2 and the like.
type CPU struct {
	Model string   `json:"model,omitempty"`
	Cores int      `json:"cores"` // logical
	Flags []string `json:"flags,omitempty"`
}

// NIC is a network interface with hardware behind it.
type NIC struct {
	Name   string `json:"name"`
	MAC    string `json:"mac"` // lower case, colons
	Driver string `json:"driver,omitempty"`
	Link   bool   `json:"link"`
	Mbps   int    `json:"mbps,omitempty"`
	Boot   bool   `json:"boot,omitempty"` // the one the machine netbooted from
}

// Disk is a whole block device that could hold data.
type Disk struct {
	Name       string      `json:"name"` // of the kernel, such as nvme0n1: a place, not an identity
	Serial     string      `json:"serial,omitempty"`
	WWN        string      `json:"wwn,omitempty"`
	Model      string      `json:"model,omitempty"`
	Transport  string      `json:"transport,omitempty"` // nvme, sata, usb, virtio, mmc, scsi
	Size       int64       `json:"size"`
	Sector     int         `json:"sector"` // logical, bytes
	Rotational bool        `json:"rotational,omitempty"`
	Removable  bool        `json:"removable,omitempty"`
	ReadOnly   bool        `json:"readOnly,omitempty"`
	Boot       bool        `json:"boot,omitempty"`    // the medium the running system was started from
	Busy       string      `json:"busy,omitempty"`    // who holds it: a mount point, md0, dm-1; "" when free
	Content    []Signature `json:"content,omitempty"` // what was found on it; empty means blank
}

// Signature is something recognisable on a disk or one of its partitions: a
// partition table, a file system, a member of md, LVM or ZFS. Each partition of a
// GPT is listed with its name as Label and Type "partition", whatever is in it; what
// is recognised in it is a Signature of its own.
type Signature struct {
	Partition int    `json:"partition,omitempty"` // 0 is the disk itself
	Type      string `json:"type"`                // gpt, dos, ext4, xfs, vfat, ntfs, linux_raid_member, LVM2_member, zfs_member, squashfs …
	Label     string `json:"label,omitempty"`     // of the file system or the partition
	UUID      string `json:"uuid,omitempty"`
}
