package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/imagebuild"
	"github.com/slipway/slipway/internal/imagebuild/signkey"
	"github.com/slipway/slipway/internal/progress"
)

// again builds the profile once more into out. The signature is by a key that is
// forgotten afterwards: it is not compared.
func (f verifyFlags) again(ctx context.Context, dir, out string, p progress.Reporter) error {
	request := f.build.request
	if request.Node == "" {
		var err error
		if request.Node, err = node(dir); err != nil {
			return err
		}
	}
	resolved, err := imagebuild.Resolve(request)
	if err != nil {
		return err
	}
	cache, err := openCache(f.cache)
	if err != nil {
		return err
	}
	fresh, remove, err := withoutStages(cache)
	if err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err == nil {
		_, err = resolved.Build(ctx, imagebuild.Options{
			Out: out, Cache: fresh, Key: signkey.Key{Private: private}, Progress: p, Version: cli.Version(), Getenv: os.Getenv,
		})
	}
	return errors.Join(err, remove())
}

// withoutStages is a cache with the same verified inputs as c and none of its
// finished stages: a build that takes its parts from the earlier one proves
// nothing.
func withoutStages(c *cas.Cache) (fresh *cas.Cache, remove func() error, err error) {
	dir, err := os.MkdirTemp(c.Dir(), "rebuild-*")
	if err != nil {
		return nil, nil, fmt.Errorf("making a cache for the rebuild: %w", err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	for _, inputs := range []string{"sha256", "partial"} {
		if err := os.Symlink(filepath.Join(c.Dir(), inputs), filepath.Join(dir, inputs)); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("making a cache for the rebuild: %w", err), remove())
		}
	}
	if fresh, err = cas.Open(dir); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return fresh, remove, nil
}
