package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/artifact/unpack"
)

// fetchHead fetches the first chunk and fits its partition table to the disk that
// was chosen. Every install gets GUIDs of its own: firmware and kernel must not
// mix up two disks that were written from one image, such as an old system disk
// left in the machine. Nothing of the image depends on them: the boot entry names
// a slot and its root hash, and the loader is found by its path.
func (r *run) fetchHead(ctx context.Context) error {
	if r.index.Disk.Chunks[0].Hole {
		return refuse("the image has no partition table")
	}
	dec, err := unpack.NewDecoder(r.index.Disk)
	if err != nil {
		return err
	}
	defer dec.Close()
	f := frame{0, make([]byte, r.index.Disk.Chunks[0].Size)}
	if err := r.fetcher().one(ctx, 0, f.data); err != nil {
		return err
	}
	raw, err := r.decode(ctx, dec, f)
	if err != nil {
		return err
	}
	sector := r.index.Disk.SectorSize
	var failed error
	renewed, guid, err := gpt.Renew(raw, sector, func() (id [16]byte) {
		if _, err := r.env.Random.Read(id[:]); err != nil {
			failed = err
		}
		return id
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	size := r.choice.System.Size / int64(sector) * int64(sector)
	if r.head, r.tail, err = gpt.Move(renewed, sector, size); err != nil {
		return refuse("%v", err)
	}
	r.seed.apply(r.head, 0)
	r.receipt.DiskGUID = guid
	return nil
}

// commit makes the disk bootable, in an order that lets power fail at any moment:
// first the rest of the first chunk, where the EFI file system begins and which is
// of no use without a table; then both copies of the table, which have checksums.
// Each is read back before the next. All the rest is on the disk and was compared.
func (r *run) commit(context.Context) error {
	n := min(int64(margin), int64(len(r.head)))
	err := r.putSame(r.head[n:], n)
	if err == nil {
		err = r.putSame(r.tail, r.tailOffset())
	}
	if err == nil {
		err = r.putSame(r.head[:n], 0)
	}
	if err != nil {
		// Better a disk that does not boot than one that boots half.
		if bad := r.clear(r.disk, r.choice.System.Size); bad != nil {
			err = fmt.Errorf("%w; and its ends cannot be cleared, it may seem to boot: %w", err, bad)
		}
		return err
	}
	r.receipt.ReadBack, r.receipt.Bytes = true, r.index.Disk.Size
	return nil
}

func (r *run) tailOffset() int64 {
	sector := int64(r.index.Disk.SectorSize)
	return r.choice.System.Size/sector*sector - int64(len(r.tail))
}

// putSame writes, flushes and reads back.
func (r *run) putSame(data []byte, offset int64) error {
	if _, err := r.disk.WriteAt(data, offset); err != nil {
		return fmt.Errorf("writing bytes %d to %d: %w", offset, offset+int64(len(data))-1, err)
	}
	if err := r.disk.Flush(); err != nil {
		return err
	}
	return r.same(data, offset)
}
