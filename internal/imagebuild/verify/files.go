package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/chunk"
	"github.com/slipway/slipway/internal/progress"
)

// worthShowing is the size from which the progress of a file is reported, bytes.
const worthShowing = 16 << 20

// file checks every byte of one file.
func (e *examination) file(ctx context.Context, f artifact.File) error {
	in, err := e.root.Open(f.Name)
	if err != nil {
		e.found.add(f.Name, "%s", reason(err))
		return nil
	}
	defer in.Close()
	task := nopTask()
	if f.Size >= worthShowing {
		task = e.opt.Progress.Start("verify "+f.Name, f.Size)
	}
	switch f.Role {
	case artifact.RoleDiskRaw:
		err = e.rawImage(ctx, f, in, task)
	case artifact.RoleDiskZstd:
		err = e.packedImage(ctx, f, in, task)
	default:
		err = e.plain(ctx, f, in, task)
	}
	task.Done("", err)
	return err
}

// plain compares the digest of the whole file.
func (e *examination) plain(ctx context.Context, f artifact.File, in io.Reader, task progress.Task) error {
	got, err := hashed(ctx, in, task)
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Name, err)
	}
	if got != f.Digest {
		e.found.add(f.Name, "content is not what was signed (digest %s, want %s)", got.Short(), f.Digest.Short())
	}
	return nil
}

// hashed is the digest of everything that in gives.
func hashed(ctx context.Context, in io.Reader, task progress.Task) (digest.Digest, error) {
	h, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return digest.Digest{}, context.Cause(ctx)
		}
		n, err := in.Read(buf)
		h.Write(buf[:n])
		task.Add(int64(n))
		if errors.Is(err, io.EOF) {
			return digest.FromHash(h), nil
		}
		if err != nil {
			return digest.Digest{}, err
		}
	}
}

// packedImage checks every frame, what it decompresses to, and the whole file.
func (e *examination) packedImage(ctx context.Context, f artifact.File, in *os.File, task progress.Task) error {
	disk := e.index.Disk
	dec, err := unpack.NewDecoder(disk)
	if err != nil {
		return err
	}
	defer dec.Close()
	whole := sha256.New()
	frame := make([]byte, artifact.MaxFrame(disk.ChunkSize))
	zeros := digest.Digest{} // the frame of a full hole, once it was decompressed
	for i, c := range disk.Chunks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := io.ReadFull(in, frame[:c.Size]); err != nil {
			e.found.add(f.Name, "chunk %d (byte %d of the file): %v", i, c.Offset, reason(err))
			return nil
		}
		whole.Write(frame[:c.Size])
		task.Add(c.Size)
		_, length := disk.Span(i)
		full := c.Hole && length == disk.ChunkSize
		if full && c.Packed == zeros && digest.Of(frame[:c.Size]) == zeros {
			continue
		}
		if _, err := dec.Decode(i, frame[:c.Size]); err != nil {
			e.found.add(f.Name, "byte %d of the file: %v", c.Offset, err)
		} else if full {
			zeros = c.Packed
		}
	}
	if got := digest.FromHash(whole); got != f.Digest && !e.found.any(f.Name) {
		e.found.add(f.Name, "frames are right, but the file's digest is %s, want %s", got.Short(), f.Digest.Short())
	}
	return nil
}

// rawImage checks every chunk of the raw image. Holes of the file are not read:
// a hole is zeros, and a byte written into one makes it data.
func (e *examination) rawImage(ctx context.Context, f artifact.File, in *os.File, task progress.Task) error {
	disk := e.index.Disk
	buf := make([]byte, disk.ChunkSize)
	holes := chunk.NewHoles(in, disk.Size)
	for i, c := range disk.Chunks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		offset, length := disk.Span(i)
		hole, err := holes.Covers(offset, length)
		if err != nil {
			return fmt.Errorf("reading %s: %w", f.Name, err)
		}
		task.Add(length)
		if hole && c.Hole {
			continue
		}
		piece := buf[:length]
		if hole {
			clear(piece)
		} else if _, err := in.ReadAt(piece, offset); err != nil {
			e.found.add(f.Name, "chunk %d (byte %d): %v", i, offset, reason(err))
			return nil
		}
		if c.Hole && unpack.Zero(piece) || !c.Hole && digest.Of(piece) == c.Raw {
			continue
		}
		e.found.add(f.Name, "%s", e.locate(i, piece))
	}
	return nil
}

// locate says where chunk i of the raw image is wrong: the exact byte when the
// compressed image still has the right content, or when it ought to be zero.
func (e *examination) locate(i int, have []byte) string {
	disk := e.index.Disk
	offset, length := disk.Span(i)
	want := make([]byte, length)
	if !disk.Chunks[i].Hole {
		p, err := e.openPacked()
		if err != nil {
			return fmt.Sprintf("chunk %d (bytes %d to %d, %s): content is not what was signed", i, offset, offset+length-1, disk.At(offset))
		}
		defer p.Close()
		if _, err := p.ReadAt(want, offset); err != nil {
			return fmt.Sprintf("chunk %d (bytes %d to %d, %s): content is not what was signed", i, offset, offset+length-1, disk.At(offset))
		}
	}
	first, n := -1, 0
	for k := range have {
		if have[k] != want[k] {
			n++
			if first < 0 {
				first = k
			}
		}
	}
	at := offset + int64(first)
	return fmt.Sprintf("byte %d (%s, chunk %d) is 0x%02x, want 0x%02x; %d bytes of the chunk differ", at, disk.At(at), i, have[first], want[first], n)
}
