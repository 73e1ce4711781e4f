// Package disk finds the disk that the node was started from and fits its
// partition table to the real size of the disk.
package disk

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
)

// Disk is a whole disk with its partitions.
type Disk struct {
	Path       string // "/dev/nvme0n1"
	Serial     string // may be empty
	Model      string // may be empty
	Size       int64  // bytes
	SectorSize int    // logical, bytes
	Partitions []Partition
}

// Partition is one entry of a disk's GPT.
type Partition struct {
	Number int
	Name   string
	GUID   string
	Path   string // device path
	Size   int64  // bytes
}

// Find returns the partition of that name.
func (d Disk) Find(name string) (Partition, bool) {
	for _, p := range d.Partitions {
		if p.Name == name {
			return p, true
		}
	}
	return Partition{}, false
}

// String names a disk so that a person can find it: path, model, serial.
func (d Disk) String() string {
	s := d.Path
	if d.Model != "" {
		s += " " + d.Model
	}
	if d.Serial != "" {
		s += " serial " + d.Serial
	} else {
		s += " (no serial)"
	}
	return s
}

// SlotName is the name of a slot's partition.
func SlotName(slot string) string {
	if slot == "b" {
		return disklayout.NameSlotB
	}
	return disklayout.NameSlotA
}

// Choose returns the disk that the boot loader came from. esp is the partition
// GUID that the boot loader left in an EFI variable, or "" when there is none
// (another boot loader, netboot): then exactly one disk must look like ours. Two
// candidates are an error, never a guess: one of them may hold another node's
// data (a cloned disk, an old system disk that was left in the machine).
func Choose(disks []Disk, slot, esp string) (Disk, error) {
	var found []Disk
	for _, d := range disks {
		p, isOurs := d.Find(disklayout.NameESP)
		if esp != "" && hasGUID(d, esp) || esp == "" && isOurs && p.Number > 0 && hasSlot(d, slot) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 1 && hasSlot(found[0], slot):
		return found[0], nil
	case len(found) == 1:
		return Disk{}, diag.WithHint(fmt.Errorf("%s, from which the boot loader came, has no partition %s", found[0], SlotName(slot)),
			"the disk was repartitioned or holds something else: write the image again")
	case len(found) == 0:
		return Disk{}, notFound(disks, slot, esp)
	default:
		return Disk{}, ambiguous(found, esp)
	}
}

func hasGUID(d Disk, guid string) bool {
	for _, p := range d.Partitions {
		if strings.EqualFold(p.GUID, guid) {
			return true
		}
	}
	return false
}

func hasSlot(d Disk, slot string) bool {
	_, ok := d.Find(SlotName(slot))
	return ok
}

// ErrNotFound is wrapped by the error that says that no disk fits; drivers may
// still be missing then.
var ErrNotFound = fmt.Errorf("boot disk not found")

func notFound(disks []Disk, slot, esp string) error {
	seen := "no disk at all"
	if len(disks) > 0 {
		names := make([]string, len(disks))
		for i, d := range disks {
			names[i] = d.String()
		}
		seen = strings.Join(names, ", ")
	}
	wanted := "one with the partitions " + disklayout.NameESP + " and " + SlotName(slot)
	if esp != "" {
		wanted = "the one with the EFI system partition " + strings.ToLower(esp)
	}
	return diag.WithHint(fmt.Errorf("%w: wanted %s, seen: %s", ErrNotFound, wanted, seen),
		"is the disk still connected? if it is, its driver is missing: build the image for the other substrate (vm or metal)")
}

func ambiguous(found []Disk, esp string) error {
	names := make([]string, len(found))
	for i, d := range found {
		names[i] = d.String()
	}
	why := "look like the boot disk"
	if esp != "" {
		why = "have the EFI system partition " + strings.ToLower(esp) + " from which the boot loader came"
	}
	return diag.WithHint(fmt.Errorf("%d disks %s: %s", len(found), why, strings.Join(names, " and ")),
		"one is a copy of the other: take out the one that must not be used, then try again")
}
