package rebuild

import (
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/bootstrap/volume/volumetest"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// Every judgement about volumes is right about the objects as the API server has them,
// by Longhorn's own definitions.
func TestVolumesAsTheServerHasThem(t *testing.T) {
	a := connect(t, controlplane.Start(t, controlplane.Options{}).KubeconfigBytes())
	must(t, a.Apply(t.Context(), definitions(t), nil))
	a.make(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": volume.Namespace}})
	for _, c := range volumetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			a.make(t, c.Objects...)
			var s volume.Storage
			for kind, into := range map[string]*[]map[string]any{"Volume": &s.Volumes, "Replica": &s.Replicas, "Engine": &s.Engines, "Node": &s.Nodes} {
				found, err := a.List(t.Context(), volume.API, kind, volume.Namespace, "")
				must(t, err)
				*into = found
			}
			var err error
			s.Claimed, err = a.List(t.Context(), "v1", "PersistentVolume", "", "")
			must(t, err)
			volumetest.Compare(t, c, s.AtRisk("n1", func(node string) bool { return node != c.Down }))
			for _, o := range c.Objects {
				must(t, a.Delete(t.Context(), object.Of(o)))
				if object.Of(o).Kind == "PersistentVolume" { // its finalizer is for a controller
					must(t, a.patch(t.Context(), object.Of(o), map[string]any{"metadata": map[string]any{"finalizers": nil}}))
				}
			}
		})
	}
}
