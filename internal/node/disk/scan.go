package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/diskfs/go-diskfs/partition/gpt"
)

// sectorUnit is the unit of sizes in sysfs, in bytes, whatever the disk's own sectors are.
const sectorUnit = 512

// List returns the disks that the kernel shows, with the partitions of those that
// have a GPT. What cannot be read (an empty card reader) is left out.
func List() ([]Disk, error) {
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		return nil, fmt.Errorf("listing disks: %w", err)
	}
	var disks []Disk
	for _, e := range entries {
		if !isDisk(e.Name()) {
			continue
		}
		if d := describe(e.Name()); d.Size > 0 {
			disks = append(disks, d)
		}
	}
	return disks, nil
}

// isDisk leaves out what cannot be a boot disk: memory, mappings, optical drives.
func isDisk(name string) bool {
	for _, prefix := range []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

func describe(name string) Disk {
	sys := filepath.Join("/sys/block", name)
	d := Disk{
		Path:       "/dev/" + name,
		Serial:     firstOf(sys, "serial", "device/serial", "wwid", "device/wwid"),
		Model:      firstOf(sys, "device/model"),
		Size:       number(sys, "size") * sectorUnit,
		SectorSize: int(number(sys, "queue/logical_block_size")),
	}
	if d.Size > 0 && d.SectorSize > 0 {
		d.Partitions, _ = partitions(d.Path, d.SectorSize)
	}
	return d
}

// partitions reads the GPT from the disk itself: the kernel shows neither GUIDs
// nor, for partitions added later, names.
func partitions(path string, sector int) ([]Partition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table, err := gpt.Read(f, sector, sector)
	if err != nil {
		return nil, fmt.Errorf("reading partitions of %s: %w", path, err)
	}
	var parts []Partition
	for _, p := range table.Partitions {
		parts = append(parts, Partition{
			Number: p.Index, Name: p.Name, GUID: p.GUID,
			Path: PartitionPath(path, p.Index), Size: int64(p.Size),
		})
	}
	return parts, nil
}

// PartitionPath is the device path of a partition: the number follows after a "p"
// when the disk's own name ends in a digit (nvme0n1p2, but sda2).
func PartitionPath(disk string, number int) string {
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' {
		return disk + "p" + strconv.Itoa(number)
	}
	return disk + strconv.Itoa(number)
}

func firstOf(dir string, names ...string) string {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if s := strings.TrimSpace(string(data)); err == nil && s != "" {
			return s
		}
	}
	return ""
}

func number(dir, name string) int64 {
	n, err := strconv.ParseInt(firstOf(dir, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
