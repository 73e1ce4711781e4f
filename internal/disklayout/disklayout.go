// Package disklayout decides where partitions go: names, types, alignment and
// reproducible GUIDs. It does arithmetic and touches nothing.
package disklayout

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Alignment of every partition, in bytes. 1 MiB is a multiple of every erase
// block and sector size in the field.
const Alignment = 1 << 20

// FirstOffset is where the first partition starts, in bytes. The megabyte before
// it, from 1 MiB on, stays free for a BIOS boot partition, so that a later
// release can add BIOS boot without moving anything.
const FirstOffset = 2 << 20

// MinESP is the smallest EFI system partition, in bytes: FAT32 with 4096-byte
// clusters on a 4096-byte-sector disk needs at least 65525 clusters, and EDK2
// refuses a FAT32 with fewer.
const MinESP = 260 << 20

// Partition names, as in the GPT. CIDATA is also the file system label that
// cloud-init's NoCloud looks for.
const (
	NameESP   = "slipway-esp"
	NameSlotA = "slipway-a"
	NameSlotB = "slipway-b"
	NameSeed  = "CIDATA"
	NameState = "slipway-state"
	NameData  = "slipway-data"
)

// Partition names of an installer stick. None of them is one of a node's: a stick
// must not be taken for an installed disk.
const (
	NameStickESP = "slipway-boot"
	NameBundle   = "SLIPWAY-INST"
)

// Partition type GUIDs (UEFI specification 5.3.3, and the Discoverable
// Partitions Specification for generic Linux data).
const (
	TypeESP       = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
	TypeBasicData = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"
	TypeLinux     = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
)

// SizeSeed is the size of the CIDATA partition, in bytes: room for large user
// data, small enough for FAT16.
const SizeSeed = 16 << 20

// Partition is a partition of the image. Offset and Size are in bytes.
type Partition struct {
	Number int
	Name   string
	Type   string
	GUID   string
	Offset int64
	Size   int64
}

// Layout is the partition table of an image.
type Layout struct {
	GUID       string
	Size       int64 // of the whole disk image, bytes
	Partitions []Partition
}

// New lays out the disk image for the given sizes in bytes. GUIDs derive from
// seed, which is different for every plan, so that equal plans give equal disks.
func New(seed string, esp, slot int64) (Layout, error) {
	if esp < MinESP {
		return Layout{}, fmt.Errorf("EFI system partition of %d bytes is too small: at least %d are needed", esp, int64(MinESP))
	}
	if slot <= 0 {
		return Layout{}, fmt.Errorf("slot size %d is not positive", slot)
	}
	parts := []Partition{
		{Name: NameESP, Type: TypeESP, Size: align(esp)},
		{Name: NameSlotA, Type: TypeLinux, Size: align(slot)},
		{Name: NameSlotB, Type: TypeLinux, Size: align(slot)},
		{Name: NameSeed, Type: TypeBasicData, Size: SizeSeed},
	}
	return lay(seed, parts), nil
}

// NewStick lays out an installer stick: what firmware starts, and what is
// installed. Its GUIDs derive from seed, which should be different for every stick,
// so that two that are plugged in can be told apart.
func NewStick(seed string, esp, bundle int64) (Layout, error) {
	if esp < MinESP || bundle <= 0 {
		return Layout{}, fmt.Errorf("partitions of %d and %d bytes make no stick", esp, bundle)
	}
	return lay(seed, []Partition{
		{Name: NameStickESP, Type: TypeESP, Size: align(esp)},
		// The type that every system shows to its user: receipts are read there.
		{Name: NameBundle, Type: TypeBasicData, Size: align(bundle)},
	}), nil
}

// lay gives the partitions their places, one behind the other.
func lay(seed string, parts []Partition) Layout {
	at := int64(FirstOffset)
	for i := range parts {
		parts[i].Number = i + 1
		parts[i].GUID = GUID(seed, parts[i].Name)
		parts[i].Offset = at
		at += parts[i].Size
	}
	// One more alignment unit holds the backup GPT (33 sectors of 512 bytes).
	return Layout{GUID: GUID(seed, "disk"), Size: at + Alignment, Partitions: parts}
}

// Find returns the partition of that name.
func (l Layout) Find(name string) (Partition, bool) {
	for _, p := range l.Partitions {
		if p.Name == name {
			return p, true
		}
	}
	return Partition{}, false
}

// SlotSize is the size of a slot for content of n bytes, in bytes: a third more
// than the content and at least 64 MiB, so that the next version fits as well.
func SlotSize(n int64) int64 {
	return align(n + max(n/3, 64<<20))
}

// GUID derives a version 8 UUID (RFC 9562, section 5.8) from a seed and a name, upper case.
func GUID(seed, name string) string {
	b := sha256.Sum256([]byte("slipway\x00" + seed + "\x00" + name))
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

func align(n int64) int64 { return (n + Alignment - 1) / Alignment * Alignment }
