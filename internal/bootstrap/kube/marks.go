package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Marks are fields that are wanted on objects of somebody else, such as labels on
// nodes. They are never put on what is not there: to apply a label to a node that has
// not registered would make a node that does not exist.
type Marks struct {
	Open    Open
	Objects []map[string]any // each with nothing but its reference and the fields
}

// Changes are what is missing, objects among it.
func (m Marks) Changes(ctx context.Context) ([]sequence.Change, error) {
	c, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := c.Changes(ctx, m.Objects)
	for i, change := range changes {
		if change.Verb == sequence.Create {
			changes[i] = sequence.Change{Verb: sequence.Await, What: change.What, Why: "has not registered"}
		}
	}
	return changes, err
}

// Apply sets the fields. The error is object.ErrNotFound where an object is not there.
func (m Marks) Apply(ctx context.Context, tell sequence.Tell) error {
	c, err := m.Open(ctx)
	if err != nil {
		return err
	}
	for _, o := range m.Objects {
		r := object.Of(o)
		live, err := c.Get(ctx, r)
		if errors.Is(err, object.ErrNotFound) {
			return fmt.Errorf("%s has not registered: %w", r, object.ErrNotFound)
		}
		if err != nil {
			return err
		}
		say(tell, "for the API server to mark "+r.String())
		if _, err := c.apply(ctx, the(o, live), false); err != nil {
			return err
		}
	}
	return nil
}

// the is o with the identity of the one that is there: the server refuses it for any
// other, and for none.
func the(o, live map[string]any) map[string]any {
	out := maps.Clone(o)
	m, _ := o["metadata"].(map[string]any)
	m = maps.Clone(m)
	m["uid"] = object.Text(live, "metadata", "uid")
	out["metadata"] = m
	return out
}
