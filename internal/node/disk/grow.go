package disk

import (
	"fmt"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
)

// MinState is the smallest state partition that a node is started with, in bytes.
const MinState = 512 << 20

// attrUnfinished marks a state partition whose file system was never completed.
// It is bit 48, the first of those that belong to the partition type (UEFI
// specification, table 5.7), and the only place for such a mark that neither mkfs
// nor a power cut in its middle can blur.
const attrUnfinished = 1 << 48

// Growth is what must be changed so that the table fits the disk.
type Growth struct {
	Table   bool // the table was moved to the new end of the disk
	Created bool // the state partition is new
	Grown   bool // the state partition became larger
	// Wipe are the bytes, as [offset, end), in which signatures of whatever was
	// there before must not survive.
	Wipe [][2]int64
}

// Changed reports whether the disk must be written.
func (g Growth) Changed() bool { return g.Table || g.Created || g.Grown }

// Grow fits the table to a disk of size bytes: the backup table goes to the end,
// and the state partition takes the rest, as does one that was smaller before the
// disk was enlarged. It changes the table only in memory.
func Grow(t *gpt.Table, size int64) (Growth, error) {
	sector := int64(t.LogicalSectorSize)
	size = size / sector * sector
	old := int64(t.TotalSize())
	if size < old {
		return Growth{}, diag.WithHint(fmt.Errorf("the disk has %d MiB, but its partition table is for %d MiB", size>>20, old>>20),
			"the image was cut off: use a larger disk")
	}
	var g Growth
	oldLast := (int64(t.LastDataSector()) + 1) * sector
	// Whatever go-diskfs thinks of the protective MBR (it takes that of a disk
	// over 2 TiB for a wrong one), it is written with the table.
	t.ProtectiveMBR = true
	if size != old || t.RecoveredFromBackup {
		t.Resize(uint64(size))
		g.Table = true
	}
	last := lastPartition(t)
	end := (int64(t.LastDataSector()) + 1) * sector / disklayout.Alignment * disklayout.Alignment
	state := find(t, disklayout.NameState)
	var from int64
	switch {
	case state == nil:
		p, err := newState(t, last, end)
		if err != nil {
			return Growth{}, err
		}
		t.Partitions = append(t.Partitions, p)
		from = int64(p.Start) * sector
		g.Created = true
		g.Wipe = append(g.Wipe, [2]int64{from, from + disklayout.Alignment})
	case state == last && (int64(state.End)+1)*sector+disklayout.Alignment <= end:
		from = (int64(state.End) + 1) * sector
		state.End = uint64(end/sector) - 1
		state.Size = (state.End - state.Start + 1) * uint64(sector)
		g.Grown = true
	}
	g.Wipe = append(g.Wipe, tail(g, from, end, oldLast, (int64(t.LastDataSector())+1)*sector)...)
	return g, nil
}

// tail returns what to wipe at the end of the disk: the place of the old backup
// table, and the last megabyte and rest of the new one, where ZFS and mdraid keep
// labels. Nothing before from, where data may be, is touched.
func tail(g Growth, from, end, oldLast, usable int64) [][2]int64 {
	var wipe [][2]int64
	if g.Table && oldLast >= from && from > 0 && oldLast < usable {
		wipe = append(wipe, [2]int64{oldLast, min(oldLast+disklayout.Alignment, usable)})
	}
	if g.Created || g.Grown {
		wipe = append(wipe, [2]int64{max(from, end-disklayout.Alignment), usable})
	}
	return wipe
}

func newState(t *gpt.Table, last *gpt.Partition, end int64) (*gpt.Partition, error) {
	sector := int64(t.LogicalSectorSize)
	var start int64 = disklayout.FirstOffset
	if last != nil {
		start = (int64(last.End) + 1) * sector
	}
	start = (start + disklayout.Alignment - 1) / disklayout.Alignment * disklayout.Alignment
	if end-start < MinState {
		return nil, diag.WithHint(fmt.Errorf("behind the slots only %d MiB are left for state, %d are needed", max(0, end-start)>>20, MinState>>20),
			"use a larger disk")
	}
	return &gpt.Partition{
		Index: freeIndex(t), Name: disklayout.NameState, Type: disklayout.TypeLinux,
		Start: uint64(start / sector), End: uint64(end/sector) - 1, Size: uint64(end - start),
		Attributes: attrUnfinished,
	}, nil
}

func find(t *gpt.Table, name string) *gpt.Partition {
	for _, p := range t.Partitions {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func lastPartition(t *gpt.Table) *gpt.Partition {
	var last *gpt.Partition
	for _, p := range t.Partitions {
		if last == nil || p.End > last.End {
			last = p
		}
	}
	return last
}

func freeIndex(t *gpt.Table) int {
	used := map[int]bool{}
	for _, p := range t.Partitions {
		used[p.Index] = true
	}
	n := 1
	for used[n] {
		n++
	}
	return n
}
