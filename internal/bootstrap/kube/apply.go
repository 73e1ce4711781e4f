package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// establishing bounds the wait for the server to serve what was defined.
const establishing = time.Minute

// Apply makes objects be as wanted, in the order in which they can be made, and
// leaves alone those that are. Fields that we once set and do not want any more are
// removed; those of others stay, and where others set the same field, ours counts.
// Between definitions and what is defined it waits until the server serves them. tell
// may be nil.
func (c *Client) Apply(ctx context.Context, objects []map[string]any, tell sequence.Tell) error {
	sorted := object.Sorted(objects)
	var defined []object.Ref
	for i, o := range sorted {
		if len(defined) > 0 && !object.Definition(o) {
			if err := c.established(ctx, defined, tell); err != nil {
				return err
			}
			defined = nil
		}
		r := object.Of(o)
		say(tell, fmt.Sprintf("for the API server to take %s, %d of %d", r, i+1, len(sorted)))
		change, err := c.change(ctx, o)
		if err == nil && change != nil {
			_, err = c.apply(ctx, o, false)
		}
		if err != nil {
			return err
		}
		if object.Definition(o) {
			defined = append(defined, r)
		}
	}
	return c.established(ctx, defined, tell)
}

func say(tell sequence.Tell, words string) {
	if tell != nil {
		tell(words)
	}
}

// apply sends one object and returns what the server made of it, or would make.
func (c *Client) apply(ctx context.Context, o map[string]any, dry bool) (map[string]any, error) {
	r := object.Of(o)
	if r.Kind == "" || r.APIVersion == "" || r.Name == "" {
		return nil, fmt.Errorf("an object without kind, version or name (%s)", r)
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: Manager, Force: &force}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var result *unstructured.Unstructured
	err = c.try(ctx, "apply "+r.String(), func() error {
		where, err := c.in(r)
		if err == nil {
			result, err = where.Patch(ctx, r.Name, types.ApplyPatchType, data, options)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result.Object, nil
}

// established waits until the server serves what the definitions define.
func (c *Client) established(ctx context.Context, definitions []object.Ref, tell sequence.Tell) error {
	if len(definitions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, establishing, fmt.Errorf("the API server did not serve new kinds within %s", establishing))
	defer cancel()
	for i, r := range definitions {
		for {
			o, err := c.Get(ctx, r)
			if err != nil {
				return err
			}
			if object.ConditionOf(o, "Established").True() {
				break
			}
			if refused := object.ConditionOf(o, "NamesAccepted"); refused.Status == "False" {
				return fmt.Errorf("%s: the API server does not serve it: %s", r, refused)
			}
			say(tell, fmt.Sprintf("for the API server to serve %s, %d of %d", r.Name, i+1, len(definitions)))
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
	}
	c.mapper.Reset()
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Delete removes an object; one that is not there is no error.
func (c *Client) Delete(ctx context.Context, r object.Ref) error {
	err := c.try(ctx, "delete "+r.String(), func() error {
		where, err := c.in(r)
		if err != nil {
			return err
		}
		return where.Delete(ctx, r.Name, metav1.DeleteOptions{})
	})
	if errors.Is(err, object.ErrNotFound) {
		return nil
	}
	return err
}
