// Package chunk compresses a raw disk image into pieces that can each be fetched,
// checked and written on their own: 4 MiB of image, one zstd frame a piece. The
// frames one after the other are a plain zstd stream of the whole image, which
// `zstd -dc` restores bit for bit. The way back is in artifact/unpack.
package chunk

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
)

// Size is how many bytes of raw image a chunk covers: small enough to be kept in
// memory by an installer with 512 MiB, large enough that an index stays small.
const Size = 4 << 20

// maxWorkers bounds memory: each worker holds a chunk, its frame and the tables
// of the compressor, about 10 MiB.
const maxWorkers = 3

// Pack compresses raw, from its start to its end, into w. It returns the chunks,
// the tree digest of the raw image (artifact.TreeDigest) and the SHA-256 of what
// was written. Holes of a sparse file are not read. The result depends on the
// content alone: not on the holes of the file nor on the number of processors.
func Pack(ctx context.Context, raw *os.File, w io.Writer, p progress.Reporter) (chunks []artifact.Chunk, rawDigest, packedDigest digest.Digest, err error) {
	st, err := raw.Stat()
	if err != nil {
		return nil, digest.Digest{}, digest.Digest{}, fmt.Errorf("compressing image: %w", err)
	}
	task := p.Start("compress disk image", st.Size())
	k := &packer{raw: raw, size: st.Size(), out: digest.NewWriter(w), task: task}
	err = k.run(ctx)
	task.Done("", err)
	if err != nil {
		return nil, digest.Digest{}, digest.Digest{}, fmt.Errorf("compressing image: %w", err)
	}
	return k.chunks, artifact.TreeDigest(k.size, Size, k.chunks), k.out.Sum(), nil
}

type packer struct {
	raw    *os.File
	size   int64
	out    *digest.Writer
	task   progress.Task
	enc    *zstd.Encoder
	hole   piece // of a chunk that is all zeros
	chunks []artifact.Chunk
}

// piece is a compressed chunk.
type piece struct {
	frame []byte
	chunk artifact.Chunk // without Offset
}

// job is a chunk on its way through a worker to the writer. Holes come finished.
type job struct {
	offset, length int64
	buf            *buffers
	done           chan piece
}

// buffers are what a chunk needs while it is worked on. There is a fixed number of them.
type buffers struct{ raw, frame []byte }

func (k *packer) run(ctx context.Context) error {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	var err error
	k.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return fmt.Errorf("preparing zstd: %w", err)
	}
	k.hole = k.pack(make([]byte, Size), nil)

	free := make(chan *buffers, workers+1)
	for range cap(free) {
		free <- &buffers{raw: make([]byte, Size), frame: make([]byte, 0, artifact.MaxFrame(Size))}
	}
	todo := make(chan job)             // to the workers
	order := make(chan job, workers*2) // to the writer, in the order of the image
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(todo)
		defer close(order)
		return k.cut(ctx, free, todo, order)
	})
	for range workers {
		group.Go(func() error { return k.work(todo) })
	}
	group.Go(func() error { return k.write(ctx, order, free) })
	return group.Wait()
}
