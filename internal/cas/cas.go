// Package cas is the content-addressed cache of everything fetched, and of the
// stages of a build that are worth keeping. What is in it was verified before it
// got its name, so a name that exists is a promise. Any number of processes may
// use one cache; a killed one leaves nothing that another has to wait for.
//
// Layout below the cache's directory:
//
//	sha256/ab/abcd…      blobs by digest, read-only
//	partial/abcd…        downloads under way, locked by who works on them
//	stage/<name>-<key>/  finished stages of builds
//	tmp/                 work that has no name yet, locked by who works on it
package cas

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
)

// EnvDir is the variable that names the cache's directory.
const EnvDir = "SLIPWAY_CACHE"

// Cache is an open cache.
type Cache struct{ dir string }

// DefaultDir is the cache's directory when the user names none by a flag:
// $SLIPWAY_CACHE, else slipway below $XDG_CACHE_HOME, else ~/.cache/slipway.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	// The XDG base directory specification has relative values ignored.
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "slipway"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "slipway"), nil
	}
	return "", diag.WithHint(errors.New("no place for the cache: HOME is not set"), "give one with --cache or "+EnvDir)
}

// Open opens the cache in dir, made when it is missing, and removes what killed
// processes left behind in it.
func Open(dir string) (*Cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening cache: %w", err)
	}
	c := &Cache{dir: abs}
	for _, sub := range []string{"sha256", "partial", "stage", "tmp"} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o755); err != nil {
			return nil, diag.WithHint(fmt.Errorf("opening cache: %w", err), "give another place with --cache or "+EnvDir)
		}
	}
	return c, c.sweep()
}

// Dir is the cache's directory.
func (c *Cache) Dir() string { return c.dir }

// Path is where the blob with digest d is, or would be.
func (c *Cache) Path(d digest.Digest) string {
	hex := d.Hex()
	if hex == "" {
		return filepath.Join(c.dir, "sha256", "unknown") // never exists: blobs are one level deeper
	}
	return filepath.Join(c.dir, "sha256", hex[:2], hex)
}

// Has reports whether the blob is there. It was verified when it came in; to
// verify it again there is Verify.
func (c *Cache) Has(d digest.Digest) bool {
	st, err := os.Stat(c.Path(d))
	return err == nil && st.Mode().IsRegular()
}

// Open opens a blob for reading.
func (c *Cache) Open(d digest.Digest) (*os.File, error) {
	f, err := os.Open(c.Path(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil, diag.WithHint(fmt.Errorf("%s is not in the cache %s: %w", d, c.dir, err), "run imagebuild fetch")
	}
	return f, err
}

// publish gives the finished file name, which is inside the cache and synced, its
// place. Another process may have put the same content there: that is as good.
func (c *Cache) publish(name string, d digest.Digest) error {
	to := c.Path(d)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(name, 0o444); err != nil {
		return err
	}
	return os.Rename(name, to)
}

// copyN copies from r to w and stops one byte after limit, so that a source that
// never ends cannot fill the disk. A negative limit means none.
func copyN(w io.Writer, r io.Reader, limit int64) (int64, error) {
	if limit < 0 {
		return io.Copy(w, r)
	}
	n, err := io.CopyN(w, r, limit+1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
