package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/plan"
)

// Rebuild builds again, from the same profile and lock, into dir, and takes
// nothing from an earlier build but its verified inputs.
type Rebuild func(ctx context.Context, dir string) error

// Reproduce builds again beside dir and compares every byte. It returns the first
// difference, or nil. The signature is left out: whoever reproduces a build need
// not have the key, and Verify has checked it.
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
		d, err = Compare(ctx, dir, again)
	} else {
		err = fmt.Errorf("building again: %w", err)
	}
	if d != nil && d.File == artifact.SignatureName {
		d = nil
	}
	return d, errors.Join(err, os.RemoveAll(work))
}

// Plan reads the plan of the build in dir, without checking anything.
func Plan(dir string) (plan.Plan, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plan.Plan{}, err
	}
	defer root.Close()
	data, err := readSmall(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return plan.Plan{}, err
	}
	x, err := artifact.Decode(data)
	if err != nil {
		return plan.Plan{}, err
	}
	f, ok := x.One(artifact.RolePlan)
	if !ok {
		return plan.Plan{}, errors.New("the build has no plan")
	}
	if data, err = readSmall(root, f.Name, maxDocument); err != nil {
		return plan.Plan{}, err
	}
	var p plan.Plan
	return p, json.Unmarshal(data, &p)
}
