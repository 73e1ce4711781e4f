package chart

import (
	"context"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/sequence"
)

// Installation is a release that is wanted in a cluster. Its two methods are what a
// step does, Observe and Do.
type Installation struct {
	Open    kube.Open
	Release Release
}

// Changes are what is missing.
func (i Installation) Changes(ctx context.Context) ([]sequence.Change, error) {
	k, err := i.Open(ctx)
	if err != nil {
		return nil, err
	}
	return Client{k}.Changes(ctx, i.Release)
}

// Apply makes the release as wanted.
func (i Installation) Apply(ctx context.Context, tell sequence.Tell) error {
	k, err := i.Open(ctx)
	if err != nil {
		return err
	}
	return Client{k}.Apply(ctx, i.Release, tell)
}
