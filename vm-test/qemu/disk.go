package qemu

import (
	"context"
	"strconv"

	"github.com/slipway/slipway/internal/hosttool"
)

// Overlay makes a qcow2 at path that shows the image base (of the given format)
// enlarged to size bytes; writes go to the overlay and the base stays as it is.
func Overlay(ctx context.Context, base, format, path string, size int64) (Disk, error) {
	err := hosttool.Run(ctx, hosttool.Cmd{Name: "qemu-img", Args: []string{
		"create", "-q", "-f", "qcow2", "-b", base, "-F", format, path, strconv.FormatInt(size, 10),
	}})
	return Disk{Path: path, Format: "qcow2"}, err
}

// Blank makes an empty qcow2 of size bytes at path.
func Blank(ctx context.Context, path string, size int64) (Disk, error) {
	err := hosttool.Run(ctx, hosttool.Cmd{Name: "qemu-img", Args: []string{
		"create", "-q", "-f", "qcow2", path, strconv.FormatInt(size, 10),
	}})
	return Disk{Path: path, Format: "qcow2"}, err
}

// Flatten writes what the disk shows as a sparse raw file, for readers on the
// host. The machine must be off.
func Flatten(ctx context.Context, d Disk, path string) error {
	return hosttool.Run(ctx, hosttool.Cmd{Name: "qemu-img", Args: []string{
		"convert", "-f", d.Format, "-O", "raw", d.Path, path,
	}})
}
