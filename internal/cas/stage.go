package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/digest"
)

// stagePath is where a stage is, or would be. name is a word for people; key is
// the digest of everything that the stage's content depends on.
func (c *Cache) stagePath(name string, key digest.Digest) string {
	return filepath.Join(c.dir, "stage", name+"-"+key.Hex())
}

// Stage returns the directory of a finished stage, and whether there is one.
func (c *Cache) Stage(name string, key digest.Digest) (dir string, ok bool) {
	dir = c.stagePath(name, key)
	st, err := os.Stat(dir)
	return dir, err == nil && st.IsDir() && !key.IsZero()
}

// BuildStage returns the directory of a stage, and has build make it when it is
// not there. build fills an empty directory; only when it returns nil, and all
// its files are on the disk, the directory gets its name, at once and complete.
// Two processes that build the same stage both do the work and one result stays.
// The files in a stage are not to be changed.
func (c *Cache) BuildStage(ctx context.Context, name string, key digest.Digest, build func(dir string) error) (string, error) {
	final, ok := c.Stage(name, key)
	if ok {
		return final, nil
	}
	if key.IsZero() {
		return "", fmt.Errorf("stage %s: no key", name)
	}
	tmp, release, err := c.tempDir(name)
	if err != nil {
		return "", c.explain(fmt.Errorf("stage %s: %w", name, err), 0)
	}
	defer release()
	if err := build(tmp); err != nil {
		return "", c.explain(err, 0)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := syncTree(tmp); err != nil {
		return "", c.explain(fmt.Errorf("stage %s: %w", name, err), 0)
	}
	if err := os.Rename(tmp, final); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return final, nil // another process was faster; equal keys mean equal content
		}
		return "", fmt.Errorf("stage %s: %w", name, err)
	}
	return final, nil
}

// DropStage removes a stage, for a caller that found it damaged. It leaves its
// name first, so that nobody sees half of it.
func (c *Cache) DropStage(name string, key digest.Digest) error {
	tmp, release, err := c.tempDir(name)
	if err != nil {
		return err
	}
	defer release()
	err = os.Rename(c.stagePath(name, key), filepath.Join(tmp, "dropped"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// tempDir makes a directory in tmp, locked until release, which removes it if it
// is still there.
func (c *Cache) tempDir(name string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(filepath.Join(c.dir, "tmp"), "stage-"+name+"-")
	if err != nil {
		return "", nil, err
	}
	f, err := os.Open(dir)
	if err == nil {
		err = lock(f)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	release = func() {
		os.RemoveAll(dir) // what cannot be removed now is swept later
		f.Close()
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}

// syncTree brings every file and directory below dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}
