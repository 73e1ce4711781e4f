package install

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/slipway/slipway/internal/artifact"
)

// frame is one compressed chunk as it came, not yet checked.
type frame struct {
	index int
	data  []byte
}

// fetcher reads frames from the build's compressed image. After a cut link it goes
// on with the frame that was under way.
type fetcher struct {
	env   Env
	build Build
	name  string
	disk  artifact.Disk
}

// all calls take for the frame of every chunk from the first on that is no hole,
// in order. take gets memory that is its own.
func (f fetcher) all(ctx context.Context, first int, alloc func(int64) []byte, take func(frame) error) error {
	a := attempts{patience: f.env.Patience, env: f.env, doing: "reading the image"}
	next := first
	for {
		at, err := f.from(ctx, next, alloc, func(fr frame) error {
			a.succeeded()
			return take(fr)
		})
		if err == nil {
			return nil
		}
		next = at
		if err := a.again(ctx, err); err != nil {
			return fmt.Errorf("reading chunk %d of the image: %w", next, err)
		}
	}
}

// from reads on one link. It returns the chunk to go on with.
func (f fetcher) from(ctx context.Context, next int, alloc func(int64) []byte, take func(frame) error) (int, error) {
	chunks := f.disk.Chunks
	for next < len(chunks) && chunks[next].Hole {
		next++
	}
	if next == len(chunks) {
		return next, nil
	}
	body, err := f.build.Open(ctx, f.name, chunks[next].Offset)
	if err != nil {
		return next, err
	}
	defer body.Close()
	for ; next < len(chunks); next++ {
		c := chunks[next]
		if c.Hole {
			// The frames of holes are small, a new request is not.
			if _, err := io.CopyN(io.Discard, body, c.Size); err != nil {
				return next, cut(err)
			}
			continue
		}
		data := alloc(c.Size)
		if _, err := io.ReadFull(body, data); err != nil {
			return next, cut(err)
		}
		if err := take(frame{next, data}); err != nil {
			return next, &unmendable{err}
		}
	}
	return next, nil
}

// unmendable is an error of who takes the frames, which no new link mends.
type unmendable struct{ err error }

func (u *unmendable) Error() string { return u.err.Error() }
func (u *unmendable) Unwrap() error { return u.err }

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the link was cut")
	}
	return err
}

// one reads a single frame.
func (f fetcher) one(ctx context.Context, i int, data []byte) error {
	a := attempts{patience: f.env.Patience, env: f.env, doing: "reading the image"}
	for {
		err := f.try(ctx, i, data)
		if err == nil {
			return nil
		}
		if err := a.again(ctx, err); err != nil {
			return fmt.Errorf("reading chunk %d of the image: %w", i, err)
		}
	}
}

func (f fetcher) try(ctx context.Context, i int, data []byte) error {
	body, err := f.build.Open(ctx, f.name, f.disk.Chunks[i].Offset)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.ReadFull(body, data)
	if err != nil {
		return cut(err)
	}
	return nil
}
