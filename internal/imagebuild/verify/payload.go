package verify

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/payload/imageset"
)

// payload checks that what bootstrap would install can be read: a chart that says
// what it is, documents that are objects, references of images in full form.
func (e *examination) payload(ctx context.Context, usable map[string]bool) error {
	for _, f := range e.index.Find(artifact.RolePayload) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !usable[f.Name] || e.found.any(f.Name) {
			continue
		}
		data, err := readSmall(e.root, f.Name, maxDocument)
		if err == nil {
			err = payloadFile(f.Name, data)
		}
		if err != nil {
			e.found.add(f.Name, "%s", reason(err))
		}
	}
	return nil
}

func payloadFile(name string, data []byte) error {
	switch path.Ext(name) {
	case ".tgz":
		return helmChart(data)
	case ".yaml":
		return objects(data)
	case ".txt":
		return references(string(data))
	}
	return errors.New("is of no kind that bootstrap reads")
}

// helmChart looks for the chart's own description.
func helmChart(data []byte) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("is no chart: %v", err)
	}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("is no chart: there is no Chart.yaml in it")
		}
		if err != nil {
			return fmt.Errorf("is no chart: %v", err)
		}
		if strings.Count(h.Name, "/") != 1 || path.Base(h.Name) != "Chart.yaml" {
			continue
		}
		var chart struct{ Name, Version string }
		if err := yaml.NewDecoder(io.LimitReader(tr, maxDocument)).Decode(&chart); err != nil || chart.Name == "" || chart.Version == "" {
			return fmt.Errorf("is no chart: %s has no name and version", h.Name)
		}
		return nil
	}
}

func objects(data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	n := 0
	for {
		var o struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		err := d.Decode(&o)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("holds no object")
		case err != nil:
			return fmt.Errorf("is not YAML: %v", err)
		case o.APIVersion == "" && o.Kind == "":
			continue // comments
		case o.APIVersion == "" || o.Kind == "":
			return fmt.Errorf("document %d is no object of Kubernetes", n+1)
		}
		n++
	}
}

func references(text string) error {
	lines := strings.Fields(text)
	if !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
		return errors.New("is not sorted, or names an image twice")
	}
	for _, ref := range lines {
		if imageset.Full(ref) != ref {
			return fmt.Errorf("%s is not the full name of an image", ref)
		}
	}
	return nil
}
