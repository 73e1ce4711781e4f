package slot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/anatol/devmapper.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
)

// MapName is the name of the verified device.
const MapName = "slipway-root"

// Open puts dm-verity over a slot and returns the path of the verified device.
// The kernel checks the top of the tree now and every block when it is read.
func Open(device, rootHash string) (string, Layout, error) {
	f, err := os.Open(device)
	if err != nil {
		return "", Layout{}, fmt.Errorf("opening the slot: %w", err)
	}
	defer f.Close()
	l, err := ReadLayout(f)
	if err != nil {
		return "", l, diag.WithHint(fmt.Errorf("slot on %s: %w", device, err), damaged)
	}
	table := devmapper.VerityTable{
		Length: uint64(l.Size()), HashType: 1, DataDevice: device, HashDevice: device,
		DataBlockSize: Block, HashBlockSize: Block, NumDataBlocks: l.DataBlocks, HashStartBlock: l.HashStart,
		Algorithm: l.Algorithm, Digest: rootHash, Salt: l.Salt,
	}
	if err := devmapper.CreateAndLoad(MapName, "SLIPWAY-"+MapName, devmapper.ReadOnlyFlag, table); err != nil {
		return "", l, fmt.Errorf("setting up dm-verity over %s: %w", device, err)
	}
	info, err := devmapper.InfoByName(MapName)
	if err != nil {
		return "", l, fmt.Errorf("asking for the verified device: %w", err)
	}
	return fmt.Sprintf("/dev/dm-%d", unix.Minor(info.DevNo)), l, nil
}

const damaged = "the slot is damaged or was written by somebody else: start the other slot, or write the image again"

// Close removes the verified device, if there is one.
func Close() error {
	if _, err := devmapper.InfoByName(MapName); errors.Is(err, unix.ENXIO) {
		return nil
	}
	if err := devmapper.Remove(MapName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the verified device: %w", err)
	}
	return nil
}

// readers is how many places of a slot are read at once. The kernel hashes what
// one reader wants on one processor at a time.
const readers = 4

// ReadThrough reads all of a verified device, so that a damaged block shows now
// and not in the middle of work. It returns the bytes read.
func ReadThrough(device string) (int64, error) {
	f, err := os.Open(device)
	if err != nil {
		return 0, fmt.Errorf("opening the verified slot: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("measuring the verified slot: %w", err)
	}
	// What was read to be checked must not push out what is needed.
	defer func() { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }()
	var all errgroup.Group
	for part := range int64(readers) {
		from, to := size*part/readers, size*(part+1)/readers
		all.Go(func() error { return readRange(f, from, to) })
	}
	return size, all.Wait()
}

func readRange(r io.ReaderAt, from, to int64) error {
	buf := make([]byte, 1<<20)
	for at := from; at < to; {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
		at += int64(n)
		if err != nil {
			return diag.WithHint(fmt.Errorf("the slot does not match its root hash near byte %d: %w", at, err), damaged)
		}
	}
	return nil
}
