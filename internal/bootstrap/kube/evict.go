package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway/slipway/internal/payload/object"
)

// Patch changes some fields of an object that is there, by a JSON merge patch (RFC
// 7386): nil removes a key. It is for objects of somebody else; ours are applied.
func (c *Client) Patch(ctx context.Context, r object.Ref, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	return c.try(ctx, "change "+r.String(), func() error {
		where, err := c.in(r)
		if err == nil {
			_, err = where.Patch(ctx, r.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: Manager})
		}
		return err
	})
}

// Evict asks a pod to go, and its disruption budget whether it may. blocked is why it
// may not now, in the server's words; the caller asks again. A pod that is not there
// has gone.
func (c *Client) Evict(ctx context.Context, r object.Ref) (blocked string, err error) {
	eviction := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": r.Name, "namespace": r.Namespace},
	}}
	err = c.try(ctx, "evict "+r.String(), func() error {
		where, err := c.in(r)
		if err != nil {
			return err
		}
		_, err = where.Create(ctx, eviction, metav1.CreateOptions{FieldManager: Manager}, "eviction")
		if apierrors.IsTooManyRequests(err) { // not that the server is busy: this is how it says no
			blocked, err = err.Error(), nil
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return err
	})
	return blocked, err
}
