package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// atOnce is how many objects are looked at at the same time.
const atOnce = 4

// shown is how many differing paths of one object are named.
const shown = 3

// Changes are what Apply would do to the objects: one change for each that is
// missing or differs, in the order in which they are made. The server decides what
// differs, by a dry run, so that its defaults are no difference. It costs two
// requests an object. No value is quoted: an object may be a secret.
func (c *Client) Changes(ctx context.Context, objects []map[string]any) ([]sequence.Change, error) {
	sorted := object.Sorted(objects)
	found := make([]*sequence.Change, len(sorted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, o := range sorted {
		group.Go(func() (err error) {
			found[i], err = c.change(ctx, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []sequence.Change
	for _, change := range found {
		if change != nil {
			out = append(out, *change)
		}
	}
	return out, nil
}

func (c *Client) change(ctx context.Context, o map[string]any) (*sequence.Change, error) {
	r := object.Of(o)
	live, err := c.Get(ctx, r)
	switch {
	case errors.Is(err, object.ErrNotFound):
		return &sequence.Change{Verb: sequence.Create, What: r.String(), Why: "is missing"}, nil
	case err != nil:
		return nil, err
	}
	wanted, err := c.apply(ctx, o, true)
	if err != nil {
		return nil, err
	}
	if paths := object.Differences(content(live), content(wanted)); len(paths) > 0 {
		return &sequence.Change{Verb: sequence.Alter, What: r.String(), Why: differs(paths)}, nil
	}
	return nil, nil
}

// Differs reports whether Apply would create or change the object.
func (c *Client) Differs(ctx context.Context, o map[string]any) (bool, error) {
	change, err := c.change(ctx, o)
	return change != nil, err
}

// content is an object without what the server keeps about it: its books say who
// set a field and when, not what it is.
func content(o map[string]any) map[string]any {
	out := maps.Clone(o)
	if m, ok := o["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		for _, book := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(m, book)
		}
		out["metadata"] = m
	}
	return out
}

func differs(paths []string) string {
	if n := len(paths); n > shown {
		return fmt.Sprintf("%s and %d more differ", strings.Join(paths[:shown], ", "), n-shown)
	}
	if len(paths) == 1 {
		return paths[0] + " differs"
	}
	return strings.Join(paths, ", ") + " differ"
}
