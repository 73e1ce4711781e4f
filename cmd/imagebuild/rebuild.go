package main

import (
	"context"
	"crypto/ed25519"
	"os"

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
	fresh, remove, err := cache.WithoutStages()
	if err != nil {
		return err
	}
	defer remove()
	_, private, err := ed25519.GenerateKey(nil)
	if err == nil {
		_, err = resolved.Build(ctx, imagebuild.Options{
			Out: out, Cache: fresh, Key: signkey.Key{Private: private}, Progress: p, Version: cli.Version(), Getenv: os.Getenv,
		})
	}
	return err
}
