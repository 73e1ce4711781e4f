package longhorn

import (
	"maps"

	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
)

// Adoptable are the definitions marked as Helm marks what it owns. When a later build
// has the chart, its release takes them over; without the marks Helm refuses to touch
// what it did not make.
func Adoptable(definitions []map[string]any) []map[string]any {
	var out []map[string]any
	for _, d := range definitions {
		d = maps.Clone(d)
		m, _ := d["metadata"].(map[string]any)
		m = maps.Clone(m)
		m["labels"] = with(object.At(d, "metadata", "labels"), map[string]any{"app.kubernetes.io/managed-by": "Helm"})
		m["annotations"] = with(object.At(d, "metadata", "annotations"), map[string]any{
			"meta.helm.sh/release-name": longhornvalues.Release, "meta.helm.sh/release-namespace": Namespace})
		d["metadata"] = m
		out = append(out, d)
	}
	return out
}

func with(given any, more map[string]any) map[string]any {
	out := map[string]any{}
	if m, ok := given.(map[string]any); ok {
		maps.Copy(out, m)
	}
	maps.Copy(out, more)
	return out
}
