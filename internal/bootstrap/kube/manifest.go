package kube

import (
	"context"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Open gives the client to work with. Before the cluster has an API server there is
// none, and it returns sequence.ErrUnseen.
type Open func(context.Context) (*Client, error)

// Manifest is a set of objects that are wanted. Its two methods are what a step
// does, Observe and Do.
type Manifest struct {
	Open    Open
	Objects []map[string]any
}

// Changes are what is missing.
func (m Manifest) Changes(ctx context.Context) ([]sequence.Change, error) {
	c, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	return c.Changes(ctx, m.Objects)
}

// Apply makes them as wanted.
func (m Manifest) Apply(ctx context.Context, tell sequence.Tell) error {
	c, err := m.Open(ctx)
	if err != nil {
		return err
	}
	return c.Apply(ctx, m.Objects, tell)
}

// Get reads one object.
func (o Open) Get(ctx context.Context, r object.Ref) (map[string]any, error) {
	c, err := o(ctx)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, r)
}

// List reads objects.
func (o Open) List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]map[string]any, error) {
	c, err := o(ctx)
	if err != nil {
		return nil, err
	}
	return c.List(ctx, apiVersion, kind, namespace, selector)
}

// Metadata reads the metadata of objects.
func (o Open) Metadata(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error) {
	c, err := o(ctx)
	if err != nil {
		return nil, err
	}
	return c.Metadata(ctx, apiVersion, kind, namespace)
}

// Delete removes an object.
func (o Open) Delete(ctx context.Context, r object.Ref) error {
	c, err := o(ctx)
	if err != nil {
		return err
	}
	return c.Delete(ctx, r)
}

// Patch changes some fields of an object.
func (o Open) Patch(ctx context.Context, r object.Ref, change map[string]any) error {
	c, err := o(ctx)
	if err != nil {
		return err
	}
	return c.Patch(ctx, r, change)
}

// Evict asks a pod to go.
func (o Open) Evict(ctx context.Context, r object.Ref) (blocked string, err error) {
	c, err := o(ctx)
	if err != nil {
		return "", err
	}
	return c.Evict(ctx, r)
}
