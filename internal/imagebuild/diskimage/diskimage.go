// Package diskimage puts a disk image together: the partition table through
// go-diskfs, and the contents of partitions at their offsets, in a sparse file.
package diskimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

// SectorSize is the logical sector size of the image, in bytes. A disk with
// 4096-byte sectors needs its table and FAT made anew by the installer.
const SectorSize = 512

// Create makes a sparse file of the layout's size with its partition table.
// The file must not exist.
func Create(path string, layout disklayout.Layout) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("creating disk image: %w", err)
	}
	err = f.Truncate(layout.Size)
	if err == nil {
		err = Table(layout).Write(f, layout.Size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing partition table: %w", err)
	}
	return nil
}

// Table is the layout as a GPT.
func Table(layout disklayout.Layout) *gpt.Table {
	t := &gpt.Table{LogicalSectorSize: SectorSize, PhysicalSectorSize: SectorSize, ProtectiveMBR: true, GUID: layout.GUID}
	for _, p := range layout.Partitions {
		t.Partitions = append(t.Partitions, &gpt.Partition{
			Index: p.Number,
			Start: uint64(p.Offset / SectorSize),
			End:   uint64((p.Offset+p.Size)/SectorSize) - 1,
			Size:  uint64(p.Size),
			Type:  gpt.Type(p.Type),
			GUID:  p.GUID,
			Name:  p.Name,
		})
	}
	return t
}

// CopyInto writes the content of the file src into path at offset and returns
// how many bytes that were.
func CopyInto(path string, offset, limit int64, src string) (int64, error) {
	in, err := os.Open(src)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if st.Size() > limit {
		return 0, fmt.Errorf("%s has %d bytes and does not fit into a partition of %d", src, st.Size(), limit)
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.NewOffsetWriter(out, offset), in)
	return n, errors.Join(err, out.Close())
}

// Qcow2 converts the raw image to qcow2 at path.
func Qcow2(ctx context.Context, raw, path string) error {
	return hosttool.Run(ctx, hosttool.Cmd{Name: "qemu-img", Args: []string{
		"convert", "-f", "raw", "-O", "qcow2", "-o", "compat=1.1,cluster_size=65536,lazy_refcounts=off",
		// One request at a time: the order of clusters, hence the bytes, must
		// not depend on which read comes back first.
		"-m", "1", raw, path,
	}})
}
