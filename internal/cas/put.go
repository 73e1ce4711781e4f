package cas

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/digest"
)

// Put stores what r gives under d, if it is what d and size (bytes, negative
// when not known) say; otherwise nothing is kept. A blob that is there already
// is not read again.
func (c *Cache) Put(ctx context.Context, d digest.Digest, size int64, r io.Reader) error {
	if c.Has(d) {
		return nil
	}
	_, _, err := c.store(ctx, size, r, func(got digest.Digest, n int64) error {
		return check(d, size, got, n)
	})
	return err
}

// Add stores what r gives under the digest that it turns out to have.
func (c *Cache) Add(ctx context.Context, r io.Reader) (digest.Digest, int64, error) {
	return c.store(ctx, -1, r, func(digest.Digest, int64) error { return nil })
}

func check(want digest.Digest, size int64, got digest.Digest, n int64) error {
	if size >= 0 && n != size {
		return fmt.Errorf("%w: want %d bytes, got %d", digest.ErrMismatch, size, n)
	}
	return digest.Check(want, got)
}

func (c *Cache) store(ctx context.Context, size int64, r io.Reader, accept func(digest.Digest, int64) error) (d digest.Digest, n int64, err error) {
	f, err := c.temp()
	if err != nil {
		return d, 0, c.explain(err, size)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
			err = c.explain(err, size)
		}
	}()
	w := digest.NewWriter(f)
	if n, err = copyN(w, &contextReader{ctx, r}, size); err != nil {
		return d, n, err
	}
	d = w.Sum()
	if err = accept(d, n); err != nil {
		return d, n, err
	}
	if err = f.Sync(); err != nil {
		return d, n, err
	}
	return d, n, c.publish(f.Name(), d)
}

// temp makes a file in tmp that is locked for as long as it is open.
func (c *Cache) temp() (*os.File, error) {
	f, err := os.CreateTemp(filepath.Join(c.dir, "tmp"), "blob-")
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// contextReader ends a copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
