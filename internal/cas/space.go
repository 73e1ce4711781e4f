package cas

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
)

// ErrFull is wrapped by the error for a cache whose file system has no room left.
var ErrFull = errors.New("no space left for the cache")

// Room fails when the cache's file system has less than n bytes left: better
// before a download than in the middle of it.
func (c *Cache) Room(n int64) error {
	free, err := c.free()
	if err != nil || free >= n {
		return err
	}
	return c.full(n, free)
}

func (c *Cache) free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(c.dir, &st); err != nil {
		return 0, fmt.Errorf("looking for room in %s: %w", c.dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

func (c *Cache) full(need, free int64) error {
	return diag.WithHint(fmt.Errorf("%w: %s needs %s more, %s are free", ErrFull, c.dir, rounded(need), rounded(free)),
		"free some space there, or choose another place with --cache or "+EnvDir)
}

// explain says in full which disk is full when err says that one is.
func (c *Cache) explain(err error, need int64) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	free, ferr := c.free()
	if ferr != nil {
		return ferr
	}
	return c.full(max(need, 0), free)
}

// rounded is a size to the next MiB, for people.
func rounded(n int64) cluster.Size { return cluster.Size((n + 1<<20 - 1) &^ (1<<20 - 1)) }
