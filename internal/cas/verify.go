package cas

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/digest"
)

// Verify reads a blob again. One that is no longer what its name says is removed,
// so that the next fetch brings it anew, and the error wraps digest.ErrMismatch.
func (c *Cache) Verify(ctx context.Context, d digest.Digest) error {
	f, err := c.Open(d)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &contextReader{ctx, f}); err != nil {
		return fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	if err := digest.Check(d, digest.FromHash(h)); err != nil {
		return errors.Join(fmt.Errorf("%s was damaged, and is removed: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return nil
}

// VerifyAll verifies every blob. It goes on after a damaged one and returns all
// that it found, together with how many blobs it read.
func (c *Cache) VerifyAll(ctx context.Context) (blobs int, err error) {
	var damaged []error
	err = filepath.WalkDir(filepath.Join(c.dir, "sha256"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		d, err := digest.Parse(e.Name())
		if err != nil {
			return nil // not ours
		}
		blobs++
		err = c.Verify(ctx, d)
		if errors.Is(err, digest.ErrMismatch) {
			damaged = append(damaged, err)
			return nil
		}
		return err
	})
	return blobs, errors.Join(append(damaged, err)...)
}
