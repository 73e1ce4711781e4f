package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/artifact"
)

// Rebuild builds again, from the same profile and lock, into dir, and takes
// nothing from an earlier build but its verified inputs.
type Rebuild func(ctx context.Context, dir string) error

// Reproduce builds again beside dir and compares every byte. It returns the first
// difference, or nil. The signature is left out: whoever reproduces a build need
// not have the key, and package verify checks it.
func Reproduce(ctx context.Context, dir string, build Rebuild) (*Difference, error) {
	dir = filepath.Clean(dir)
	// Beside the build: there is room for one, so there may be for another.
	work, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".rebuild-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("building again: %w", err)
	}
	again := filepath.Join(work, "build")
	err = build(ctx, again)
	var d *Difference
	if err == nil {
		d, err = Builds(ctx, dir, again)
	} else {
		err = fmt.Errorf("building again: %w", err)
	}
	if d != nil && d.File == artifact.SignatureName {
		d = nil
	}
	return d, errors.Join(err, os.RemoveAll(work))
}
