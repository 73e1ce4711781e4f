package usb

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
)

// margin is the part at the start and at the end of a device that is made zero
// before anything else: what firmware boots from and what a kernel recognises a
// partition table, RAID or ZFS label by. The start is written last.
const margin = 1 << 20

// Write puts the content onto the target, with its partition table moved to the
// target's size, and reads everything back. When it fails or is interrupted the
// target does not boot: its first megabyte is zero until all the rest is right.
func Write(ctx context.Context, c Content, t Target, p progress.Reporter) error {
	w := &writer{content: c, target: t, progress: p, size: c.Disk().Size}
	if t.Size() < max(w.size, 2*margin) || c.Disk().ChunkSize < margin {
		return fmt.Errorf("image of %d bytes in chunks of %d does not suit a device of %d", w.size, c.Disk().ChunkSize, t.Size())
	}
	if err := w.prepare(ctx); err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	// The order is the point: what could boot goes first and comes last.
	for _, step := range []func(context.Context) error{w.invalidate, w.body, w.end, w.readBack, w.start} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("interrupted (%w)", err)
			}
			return diag.WithHint(fmt.Errorf("the device is not bootable and its old content is lost: %w", err), hint(err))
		}
	}
	return nil
}

func hint(err error) string {
	if errors.Is(err, errDiffers) {
		return "the stick does not keep what is written to it (worn out, or smaller than it says); use another one"
	}
	return "run the command again to write it from the start"
}

var errDiffers = errors.New("read back something else than was written")

type writer struct {
	content  Content
	target   Target
	progress progress.Reporter
	size     int64         // of the image
	patches  []patch       // what differs from the image
	expect   []expectation // what the chunks must be when they are read back
	first    []byte        // the first megabyte, kept back
	zeros    []byte
	buf      []byte
}

// patch is bytes that replace those of the image at an offset.
type patch struct {
	offset int64
	data   []byte
}

// expectation is what a chunk holds on the device. A hole has no digest.
type expectation struct {
	offset, length int64
	sum            digest.Digest
}

// prepare reads the partition table of the image and moves it. The image's backup
// table would stand in the middle of a larger disk: it goes.
func (w *writer) prepare(ctx context.Context) error {
	disk := w.content.Disk()
	w.zeros, w.buf = make([]byte, disk.ChunkSize), make([]byte, disk.ChunkSize)
	var head []byte
	found := errors.New("found")
	err := w.content.Each(ctx, func(c unpack.Chunk) error {
		head = append(head, c.Data...)
		if c.Data == nil || len(head) >= gpt.HeadSize(disk.SectorSize) {
			return found
		}
		return nil
	})
	if err != nil && !errors.Is(err, found) {
		return err
	}
	head = head[:min(len(head), gpt.HeadSize(disk.SectorSize))]
	size := w.target.Size() / int64(disk.SectorSize) * int64(disk.SectorSize)
	start, tail, err := gpt.Move(head, disk.SectorSize, size)
	if err != nil {
		return err
	}
	w.patches = []patch{{0, start}, {w.size - int64(len(tail)), make([]byte, len(tail))}, {size - int64(len(tail)), tail}}
	return nil
}

func (w *writer) invalidate(context.Context) error {
	end := (w.target.Size() - margin) &^ 4095
	if err := w.put(w.zeros[:margin], 0); err != nil {
		return err
	}
	if err := w.put(make([]byte, w.target.Size()-end), end); err != nil {
		return err
	}
	return w.target.Sync()
}

// body writes all chunks but the first megabyte, and notes what they are.
func (w *writer) body(ctx context.Context) error {
	task := w.progress.Start("write image", w.size)
	err := w.content.Each(ctx, func(c unpack.Chunk) error {
		data := w.patched(c)
		e := expectation{offset: c.Offset, length: c.Length}
		if data != nil {
			e.sum = digest.Of(data)
		}
		w.expect = append(w.expect, e)
		task.Add(c.Length)
		return w.chunk(c, data)
	})
	if err == nil {
		err = w.target.Sync()
	}
	task.Done("", err)
	return err
}

// patched is the content of a chunk as it belongs onto the device, or nil when it
// is a hole.
func (w *writer) patched(c unpack.Chunk) []byte {
	data := c.Data
	for _, p := range w.patches {
		from, to := max(p.offset, c.Offset), min(p.offset+int64(len(p.data)), c.Offset+c.Length)
		if from >= to {
			continue
		}
		if data == nil {
			data = w.buf[:c.Length]
			clear(data)
		}
		copy(data[from-c.Offset:], p.data[from-p.offset:to-p.offset])
	}
	return data
}

func (w *writer) chunk(c unpack.Chunk, data []byte) error {
	if data == nil {
		return w.hole(c.Offset, c.Length)
	}
	if c.Offset < margin { // the first chunk, as chunks are not smaller
		w.first = bytes.Clone(data[:min(margin, int64(len(data)))])
		return w.put(data[len(w.first):], c.Offset+int64(len(w.first)))
	}
	return w.put(data, c.Offset)
}

// hole makes a range zero. It reads first: most of a stick is zero already when
// it is new or was written like this before, and reading costs it nothing.
func (w *writer) hole(offset, n int64) error {
	have := w.buf[:n]
	if _, err := w.target.ReadAt(have, offset); err == nil && unpack.Zero(have) {
		return nil
	}
	return w.put(w.zeros[:n], offset)
}

// end writes the backup partition table to the end of a device that is larger
// than the image.
func (w *writer) end(context.Context) error {
	tail := w.patches[len(w.patches)-1]
	if w.target.Size() > w.size {
		if err := w.put(tail.data, tail.offset); err != nil {
			return err
		}
	}
	return w.target.Sync()
}

// readBack compares everything on the device with what was meant, but the first
// megabyte, which is still zero.
func (w *writer) readBack(ctx context.Context) error {
	task := w.progress.Start("read back", w.size)
	err := w.compareAll(ctx, task)
	task.Done("", err)
	return err
}

func (w *writer) compareAll(ctx context.Context, task progress.Task) error {
	for i, e := range w.expect {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		have := w.buf[:e.length]
		if _, err := w.target.ReadAt(have, e.offset); err != nil {
			return fmt.Errorf("reading back at byte %d: %w", e.offset, err)
		}
		if i == 0 && w.first != nil {
			if !unpack.Zero(have[:len(w.first)]) {
				return fmt.Errorf("byte 0: %w", errDiffers)
			}
			copy(have, w.first)
		}
		if e.sum.IsZero() && !unpack.Zero(have) || !e.sum.IsZero() && digest.Of(have) != e.sum {
			return fmt.Errorf("bytes %d to %d (%s): %w", e.offset, e.offset+e.length-1, w.content.Disk().At(e.offset), errDiffers)
		}
		task.Add(e.length)
	}
	tail := w.patches[len(w.patches)-1]
	return w.same(tail.data, tail.offset)
}

// start writes the first megabyte, which makes the device bootable, as one write.
func (w *writer) start(context.Context) error {
	if err := w.put(w.first, 0); err != nil {
		return err
	}
	if err := w.target.Sync(); err != nil {
		return err
	}
	err := w.same(w.first, 0)
	if err != nil {
		// Better none than one that boots half.
		return errors.Join(err, w.put(w.zeros[:len(w.first)], 0), w.target.Sync())
	}
	return nil
}

func (w *writer) put(data []byte, offset int64) error {
	if _, err := w.target.WriteAt(data, offset); err != nil {
		return fmt.Errorf("writing at byte %d: %w", offset, err)
	}
	return nil
}

func (w *writer) same(data []byte, offset int64) error {
	have := make([]byte, len(data))
	if _, err := w.target.ReadAt(have, offset); err != nil {
		return fmt.Errorf("reading back at byte %d: %w", offset, err)
	}
	if !bytes.Equal(have, data) {
		return fmt.Errorf("bytes %d to %d: %w", offset, offset+int64(len(data))-1, errDiffers)
	}
	return nil
}
