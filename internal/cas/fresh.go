package cas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WithoutStages is a cache with the same verified inputs as c and none of its
// finished stages: a build that takes its parts from an earlier one proves nothing
// about it. Remove it; what a killed process leaves of it is swept with the rest.
func (c *Cache) WithoutStages() (fresh *Cache, remove func(), err error) {
	dir, remove, err := c.tempDir("rebuild")
	if err != nil {
		return nil, nil, fmt.Errorf("making a cache for the rebuild: %w", err)
	}
	for _, inputs := range []string{"sha256", "partial"} {
		err = errors.Join(err, os.Symlink(filepath.Join(c.dir, inputs), filepath.Join(dir, inputs)))
	}
	if err == nil {
		fresh, err = Open(dir)
	}
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("making a cache for the rebuild: %w", err)
	}
	return fresh, remove, nil
}
