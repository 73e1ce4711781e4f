package cas

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway/slipway/internal/digest"
)

// Part is a download under way. It outlives the process, so that the next one
// goes on where this one stopped.
type Part struct {
	cache *Cache
	f     *os.File
	want  digest.Digest
	size  int64
}

// Partial opens the download of a blob of size bytes, positioned at its end. It
// waits for another process that is working on the same one. When the blob has
// come in meanwhile it returns nil without an error.
func (c *Cache) Partial(ctx context.Context, d digest.Digest, size int64) (*Part, error) {
	name := filepath.Join(c.dir, "partial", d.Hex())
	for {
		if c.Has(d) {
			return nil, nil
		}
		f, err := openLocked(name)
		if err != nil {
			return nil, c.explain(fmt.Errorf("opening download: %w", err), size)
		}
		if f != nil {
			p := &Part{cache: c, f: f, want: d, size: size}
			if _, err := f.Seek(0, io.SeekEnd); err != nil {
				p.Close()
				return nil, fmt.Errorf("opening download: %w", err)
			}
			return p, nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for another process's download: %w", err)
		}
	}
}

// openLocked returns nil when another process has the file, or when it was
// renamed or removed between opening and locking it.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = lock(f)
	if err == nil && sameFile(f, name) {
		return f, nil
	}
	f.Close()
	if err != nil && !held(err) {
		return nil, err
	}
	return nil, nil
}

func sameFile(f *os.File, name string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Size is how many bytes are there.
func (p *Part) Size() (int64, error) {
	st, err := p.f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Write appends.
func (p *Part) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	return n, p.cache.explain(err, p.size)
}

// Reset throws away what is there.
func (p *Part) Reset() error {
	if err := p.f.Truncate(0); err != nil {
		return err
	}
	_, err := p.f.Seek(0, io.SeekStart)
	return err
}

// Commit verifies the whole download and gives it its place in the cache. On a
// mismatch (digest.ErrMismatch) the bytes stay, for the caller to Reset.
func (p *Part) Commit() error {
	if _, err := p.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, p.f)
	if err != nil {
		return err
	}
	if err := check(p.want, p.size, digest.FromHash(h), n); err != nil {
		return err
	}
	if err := p.f.Sync(); err != nil {
		return p.cache.explain(err, p.size)
	}
	return p.cache.publish(p.f.Name(), p.want)
}

// Discard removes the download; Close must still be called.
func (p *Part) Discard() error {
	err := os.Remove(p.f.Name())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Close ends the work on the download and lets others have it.
func (p *Part) Close() error { return p.f.Close() }
