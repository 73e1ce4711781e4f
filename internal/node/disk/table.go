package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/diskfs/go-diskfs/partition/gpt"
	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
)

// State is the state partition of a disk.
type State struct {
	Partition
	Unfinished bool // its file system was never completed, so it holds nobody's data
}

// Fit makes the partition table fit the disk and returns its state partition. It
// must run before any partition of the disk is in use: only then does the kernel
// read the whole table again.
func Fit(d Disk) (State, Growth, error) {
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		return State{}, Growth{}, fmt.Errorf("opening %s: %w", d, err)
	}
	defer f.Close()
	table, growth, err := FitTable(f, d.Size, d.SectorSize)
	if err != nil {
		return State{}, Growth{}, fmt.Errorf("fitting the partitions of %s: %w", d, err)
	}
	if growth.Changed() {
		if err := reread(f); err != nil {
			return State{}, growth, fmt.Errorf("reading the new partition table of %s: %w", d, err)
		}
	}
	p := find(table, disklayout.NameState)
	state := State{
		Partition: Partition{Number: p.Index, Name: p.Name, GUID: p.GUID,
			Path: PartitionPath(d.Path, p.Index), Size: int64(p.Size)},
		Unfinished: p.Attributes&attrUnfinished != 0,
	}
	return state, growth, appears(state.Path)
}

// FitTable does Fit's work on any file. Signatures go first and the table last:
// whenever the power fails, the next boot finds a state to go on from.
func FitTable(f *os.File, size int64, sector int) (*gpt.Table, Growth, error) {
	table, err := gpt.Read(f, sector, sector)
	if err != nil {
		return nil, Growth{}, err
	}
	growth, err := Grow(table, size)
	if err != nil || !growth.Changed() {
		return table, growth, err
	}
	for _, w := range growth.Wipe {
		if err := zero(f, w[0], w[1]); err != nil {
			return nil, growth, fmt.Errorf("wiping old signatures: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return nil, growth, err
	}
	return table, growth, write(f, table, size)
}

// Finish records that the state partition's file system is complete. From then on
// no boot ever makes it again.
func Finish(d Disk) error {
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", d, err)
	}
	defer f.Close()
	if err := finishTable(f, d.Size, d.SectorSize); err != nil {
		return fmt.Errorf("marking the state partition of %s as complete: %w", d, err)
	}
	return nil
}

func finishTable(f *os.File, size int64, sector int) error {
	table, err := gpt.Read(f, sector, sector)
	if err != nil {
		return err
	}
	p := find(table, disklayout.NameState)
	if p == nil {
		return errors.New("there is no state partition")
	}
	p.Attributes &^= attrUnfinished
	return write(f, table, size)
}

func write(f *os.File, table *gpt.Table, size int64) error {
	if err := table.Write(f, size); err != nil {
		return err
	}
	if err := writeProtectiveSize(f, size, table.LogicalSectorSize); err != nil {
		return fmt.Errorf("writing the protective MBR: %w", err)
	}
	return f.Sync()
}

// writeProtectiveSize sets the size of the protective MBR's partition. go-diskfs
// lets it wrap around on disks with more than 2^32 sectors; it must be 0xFFFFFFFF
// there (UEFI specification 5.2.3).
func writeProtectiveSize(f io.WriterAt, size int64, sector int) error {
	const at = 446 + 12
	sectors := min(size/int64(sector)-1, 0xFFFFFFFF)
	_, err := f.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(sectors)), at)
	return err
}

func zero(f io.WriterAt, from, to int64) error {
	block := make([]byte, 1<<20)
	for from < to {
		n, err := f.WriteAt(block[:min(int64(len(block)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// reread makes the kernel read the partition table. Somebody who has just looked
// at a partition may still hold it for a moment.
func reread(f *os.File) error {
	var err error
	for range 50 {
		if err = unix.IoctlSetInt(int(f.Fd()), unix.BLKRRPART, 0); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return diag.WithHint(err, "another program uses a partition of the disk; restart the node")
}

// appears waits for a device node, which devtmpfs makes a moment after the table was read.
func appears(path string) error {
	for range 250 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the kernel does not show %s within 5 s", path)
}
