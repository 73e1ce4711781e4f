package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/digest"
)

// cut walks over the image, finds the holes and hands out the rest.
func (k *packer) cut(ctx context.Context, free <-chan *buffers, todo, order chan<- job) error {
	var data extent
	for offset := int64(0); offset < k.size; offset += Size {
		j := job{offset: offset, length: min(Size, k.size-offset), done: make(chan piece, 1)}
		var err error
		if data, err = nextData(k.raw, k.size, data, offset); err != nil {
			return err
		}
		if data.start >= offset+Size && j.length == Size {
			j.done <- k.hole
			if err := send(ctx, order, j); err != nil {
				return err
			}
			continue
		}
		select {
		case j.buf = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := send(ctx, order, j); err != nil {
			return err
		}
		if err := send(ctx, todo, j); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, ch chan<- job, j job) error {
	select {
	case ch <- j:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// work compresses chunks until there are no more.
func (k *packer) work(todo <-chan job) error {
	for j := range todo {
		raw := j.buf.raw[:j.length]
		if _, err := k.raw.ReadAt(raw, j.offset); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the image became shorter meanwhile")
			}
			return fmt.Errorf("reading at %d: %w", j.offset, err)
		}
		if j.length == Size && unpack.Zero(raw) {
			j.done <- k.hole
			continue
		}
		p := k.pack(raw, j.buf.frame[:0])
		j.buf.frame = p.frame
		j.done <- p
	}
	return nil
}

// pack compresses one chunk; the frame is appended to dst.
func (k *packer) pack(raw, dst []byte) piece {
	frame := k.enc.EncodeAll(raw, dst)
	c := artifact.Chunk{Size: int64(len(frame)), Packed: digest.Of(frame)}
	if unpack.Zero(raw) {
		c.Hole = true
	} else {
		c.Raw = digest.Of(raw)
	}
	return piece{frame: frame, chunk: c}
}

// write puts the frames in the order of the image and gives their buffers back.
func (k *packer) write(ctx context.Context, order <-chan job, free chan<- *buffers) error {
	var at int64
	for j := range order {
		var p piece
		select {
		case p = <-j.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, err := k.out.Write(p.frame); err != nil {
			return fmt.Errorf("writing chunk %d: %w", len(k.chunks), err)
		}
		p.chunk.Offset = at
		at += p.chunk.Size
		k.chunks = append(k.chunks, p.chunk)
		k.task.Add(j.length)
		if j.buf != nil {
			free <- j.buf
		}
	}
	return nil
}
