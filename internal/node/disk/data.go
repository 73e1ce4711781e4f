package disk

import (
	"fmt"
	"os"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/disklayout"
)

// LayData gives a disk a new table with one partition, for data, over all of it, and
// returns the partition's device. Whatever was on the disk is lost.
func LayData(d Disk) (device string, err error) {
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", d, err)
	}
	defer f.Close()
	if err := layData(f, d.Size, d.SectorSize); err != nil {
		return "", fmt.Errorf("writing the partition table of %s: %w", d, err)
	}
	if err := reread(f); err != nil {
		return "", fmt.Errorf("reading the new partition table of %s: %w", d, err)
	}
	device = PartitionPath(d.Path, 1)
	return device, appears(device)
}

// layData does LayData's work on any file. GUIDs are random: two disks must never
// have the same.
func layData(f *os.File, size int64, sector int) error {
	unit := int64(sector)
	table := &gpt.Table{LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true}
	table.Resize(uint64(size / unit * unit))
	start := int64(disklayout.Alignment)
	end := (int64(table.LastDataSector()) + 1) * unit / disklayout.Alignment * disklayout.Alignment
	if end-start < MinData {
		return fmt.Errorf("it has %d MiB, a data disk needs %d", size>>20, int64(MinData)>>20)
	}
	table.Partitions = []*gpt.Partition{{
		Index: 1, Name: disklayout.NameData, Type: disklayout.TypeLinux,
		Start: uint64(start / unit), End: uint64(end/unit) - 1, Size: uint64(end - start),
	}}
	// Old signatures must survive neither where the file system begins nor at the end
	// of the disk, where RAID and ZFS keep labels.
	for _, w := range [][2]int64{{start, start + disklayout.Alignment}, {end - disklayout.Alignment, size}} {
		if err := zero(f, w[0], w[1]); err != nil {
			return err
		}
	}
	return write(f, table, size)
}

// MinData is the smallest data disk, bytes: the file system's own tables and a
// volume or two.
const MinData = 64 << 20
