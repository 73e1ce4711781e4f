package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipway/slipway/internal/payload/object"
)

// Decode reads the objects of a stream of YAML or JSON documents, as Kubernetes'
// own tools read it; those in a List come one by one. name is for errors.
func Decode(name string, data []byte) ([]map[string]any, error) {
	var out []map[string]any
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
		}
		found, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
		}
		out = append(out, found...)
	}
}

func decode(text []byte) ([]map[string]any, error) {
	data, err := yaml.ToJSON(text)
	if err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if len(o) == 0 {
		return nil, nil // comments only
	}
	if items, isList := o["items"]; isList && object.Of(o).Kind == "List" && items != nil {
		return object.Maps(o, "items"), nil
	}
	r := object.Of(o)
	if r.Kind == "" || r.APIVersion == "" || r.Name == "" {
		return nil, errors.New("no object: apiVersion, kind or metadata.name is missing")
	}
	return []map[string]any{o}, nil
}
