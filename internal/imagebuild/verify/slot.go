package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/progress"
)

// slot checks what slot A holds: its digest, the shape of the squashfs, and the
// verity tree against the root hash that the kernel command line will name.
func (e *examination) slot(ctx context.Context, usable map[string]bool) error {
	image, closer, name := e.image(usable)
	if image == nil {
		return nil
	}
	defer closer.Close()
	s := e.index.Slot
	p, ok := e.index.Disk.Partition(disklayout.NameSlotA)
	if !ok || p.Size != s.Size {
		e.found.add(artifact.IndexName, "slot of %d bytes, but partition %s has %d", s.Size, disklayout.NameSlotA, p.Size)
		return nil
	}
	got, err := hashed(ctx, io.NewSectionReader(image, p.Offset, s.Content), nopTask())
	if err != nil {
		return fmt.Errorf("reading slot: %w", err)
	}
	if got != s.Digest {
		e.found.add(name, "%s: content has digest %s, the index has %s", e.index.Disk.At(p.Offset), got.Short(), s.Digest.Short())
		return nil
	}
	e.squashfs(io.NewSectionReader(image, p.Offset, s.Content), name)
	return e.verity(ctx, usable, io.NewSectionReader(image, p.Offset, s.Content), name)
}

func nopTask() progress.Task { return progress.Nop{}.Start("", 0) }

// squashfs checks the superblock: magic, and that the length it claims, rounded
// up to a page, is where the verity superblock begins.
func (e *examination) squashfs(r io.ReaderAt, name string) {
	var super [96]byte
	if _, err := r.ReadAt(super[:], 0); err != nil {
		e.found.add(name, "slot: %v", err)
		return
	}
	used := int64(min(binary.LittleEndian.Uint64(super[40:]), 1<<50))
	switch {
	case string(super[:4]) != "hsqs":
		e.found.add(name, "slot: does not start with a squashfs")
	case (used+4095)/4096*4096 != e.index.Slot.Squashfs:
		e.found.add(name, "slot: squashfs of %d bytes, the index has %d", used, e.index.Slot.Squashfs)
	}
}

// verity lets veritysetup check every block against the root hash.
func (e *examination) verity(ctx context.Context, usable map[string]bool, content io.Reader, name string) error {
	path := ""
	if f, ok := e.one(artifact.RoleSlot, usable); ok && !e.found.any(f.Name) {
		path = e.path(f)
	} else {
		tmp, err := extract(content)
		if err != nil {
			return err
		}
		defer os.Remove(tmp)
		path = tmp
	}
	if _, err := hosttool.Find("veritysetup"); err != nil {
		return err
	}
	s := e.index.Slot
	err := hosttool.Run(ctx, hosttool.Cmd{Name: "veritysetup", Args: []string{
		"verify", path, path, s.RootHash, fmt.Sprintf("--hash-offset=%d", s.Squashfs)}})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.found.add(name, "slot: verity tree does not lead to root hash %.12s: %v", s.RootHash, err)
	}
	return nil
}

// extract writes the content of the slot to a temporary file.
func extract(content io.Reader) (string, error) {
	f, err := os.CreateTemp("", "slipway-slot-*")
	if err != nil {
		return "", fmt.Errorf("extracting slot: %w", err)
	}
	_, err = io.Copy(f, content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("extracting slot: %w", err)
	}
	return f.Name(), nil
}
