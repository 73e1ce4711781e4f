package longhorn

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
)

// Plain makes YAML of the definitions as Longhorn's module has them: as a template of
// its chart, in which the chart's labels and namespace are still to be filled in.
// YAML without such places comes back as it is; any other place is an error.
func Plain(text []byte) ([]byte, error) {
	for place, content := range map[string]string{
		`{{- include "longhorn.labels" . | nindent 4 }}`: "",
		`{{ include "release_namespace" . }}`:            Namespace,
	} {
		text = bytes.ReplaceAll(text, []byte(place), []byte(content))
	}
	if at := bytes.Index(text, []byte("{{")); at >= 0 {
		line := bytes.Count(text[:at], []byte("\n")) + 1
		return nil, fmt.Errorf("line %d of Longhorn's definitions has a place that only its chart can fill in", line)
	}
	return text, nil
}

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
