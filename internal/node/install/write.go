package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/digest"
)

// maxCorrupt is how often a chunk may arrive damaged before the install ends. TCP
// lets a flipped bit through once in a while; three in a row have another cause.
const maxCorrupt = 3

// fetcher reads the image of this install.
func (r *run) fetcher() fetcher {
	file, _ := r.index.One(artifact.RoleDiskZstd) // Decode refuses an index without one
	return fetcher{env: r.env, build: r.source, name: file.Name, disk: r.index.Disk}
}

// patches are what differs from the image on this disk, beside its first chunk.
// The image's own backup table would stand in the middle of a larger disk: it
// goes, also where it would be in the right place, because it comes last.
func (r *run) patches() []patch {
	n := int64(gpt.TailSize(r.index.Disk.SectorSize))
	return []patch{r.seed, {r.index.Disk.Size - n, make([]byte, n)}}
}

// write writes all chunks but the first.
func (r *run) write(ctx context.Context) error {
	disk := r.index.Disk
	r.meter.expect(disk.Size, "")
	r.want = make([]digest.Digest, len(disk.Chunks))
	r.want[0] = digest.Of(r.head)
	patches := r.patches()
	group, ctx := errgroup.WithContext(ctx)
	frames := make(chan frame)
	pool := sync.Pool{New: func() any { return new([]byte) }}
	group.Go(func() error {
		defer close(frames)
		return r.fetcher().all(ctx, 1, func(n int64) []byte { return sized(pool.Get().(*[]byte), n) }, func(f frame) error {
			select {
			case frames <- f:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	group.Go(func() error { return r.writeHoles(ctx, patches) })
	for range max(r.env.Workers, 1) {
		group.Go(func() error { return r.writer(ctx, frames, patches, &pool) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.disk.Flush()
}

// sized returns memory for n bytes, the old one when it is enough.
func sized(b *[]byte, n int64) []byte {
	if int64(cap(*b)) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// writer checks frames and writes what they hold.
func (r *run) writer(ctx context.Context, frames <-chan frame, patches []patch, pool *sync.Pool) error {
	dec, err := unpack.NewDecoder(r.index.Disk)
	if err != nil {
		return err
	}
	defer dec.Close()
	for f := range frames {
		raw, err := r.decode(ctx, dec, f)
		if err != nil {
			return err
		}
		if err := r.put(f.index, raw, patches); err != nil {
			return err
		}
		pool.Put(&f.data)
	}
	return nil
}

// decode checks and decompresses a frame, and fetches it again when it is damaged.
func (r *run) decode(ctx context.Context, dec *unpack.Decoder, f frame) ([]byte, error) {
	for n := 1; ; n++ {
		raw, err := dec.Decode(f.index, f.data)
		if err == nil || n == maxCorrupt || !errors.Is(err, digest.ErrMismatch) {
			return raw, err
		}
		r.env.Screen.Say(fmt.Sprintf("%v; fetching it again (%d of %d)", err, n, maxCorrupt-1))
		if err := r.fetcher().one(ctx, f.index, f.data); err != nil {
			return nil, err
		}
	}
}

// put writes a chunk and notes what must be read back. A nil raw is a hole.
func (r *run) put(i int, raw []byte, patches []patch) error {
	offset, length := r.index.Disk.Span(i)
	r.want[i] = r.index.Disk.Chunks[i].Raw
	for _, p := range patches {
		if !p.touches(offset, length) {
			continue
		}
		if raw == nil {
			raw = make([]byte, length)
		}
		p.apply(raw, offset)
		r.want[i] = digest.Of(raw)
	}
	var err error
	if raw == nil {
		err = r.disk.Zero(offset, length)
	} else {
		_, err = r.disk.WriteAt(raw, offset)
	}
	if err != nil {
		return fmt.Errorf("writing bytes %d to %d: %w", offset, offset+length-1, err)
	}
	r.meter.add(length)
	return nil
}

// writeHoles makes the image's holes zero: the disk may be full of old data.
func (r *run) writeHoles(ctx context.Context, patches []patch) error {
	for i, c := range r.index.Disk.Chunks {
		if i == 0 || !c.Hole {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.put(i, nil, patches); err != nil {
			return err
		}
	}
	return nil
}

// errDiffers: the disk does not keep what is written to it.
var errDiffers = errors.New("the disk gives back something else than was written")

// readBack compares everything but the first chunk, which is still zero.
func (r *run) readBack(ctx context.Context) error {
	r.meter.expect(r.index.Disk.Size, "")
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range max(r.env.Workers, 1) {
		group.Go(func() error {
			buf := make([]byte, r.index.Disk.ChunkSize)
			for {
				i := int(next.Add(1))
				if i >= len(r.want) {
					return nil
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := r.compare(i, buf); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

func (r *run) compare(i int, buf []byte) error {
	offset, length := r.index.Disk.Span(i)
	have := buf[:length]
	if _, err := r.disk.ReadAt(have, offset); err != nil {
		return fmt.Errorf("reading back bytes %d to %d: %w", offset, offset+length-1, err)
	}
	hole := r.want[i].IsZero()
	if hole && !unpack.Zero(have) || !hole && digest.Of(have) != r.want[i] {
		return fmt.Errorf("bytes %d to %d (%s): %w", offset, offset+length-1, r.index.Disk.At(offset), errDiffers)
	}
	r.meter.add(length)
	return nil
}

// same compares bytes on the disk.
func (r *run) same(want []byte, offset int64) error {
	have := make([]byte, len(want))
	if _, err := r.disk.ReadAt(have, offset); err != nil {
		return fmt.Errorf("reading back bytes %d to %d: %w", offset, offset+int64(len(want))-1, err)
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("bytes %d to %d: %w", offset, offset+int64(len(want))-1, errDiffers)
	}
	return nil
}
