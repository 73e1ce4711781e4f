package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/payload/longhornvalues"
)

// documents are the YAML documents of an input, as one stream: of a file as it is,
// of a directory its files in the order of their names.
func documents(_ Inputs, data []byte) ([]byte, error) {
	if !isTar(data) {
		return data, nil
	}
	files, err := untar(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isYAML(name) || path.Base(name) == "kustomization.yaml" {
			continue
		}
		text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(files[name]), []byte("---")))
		out.WriteString("---\n")
		out.Write(text)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// definitions are Longhorn's, which its module has as a template of its chart: with
// places for the chart's labels and for the namespace.
func definitions(_ Inputs, data []byte) ([]byte, error) {
	for place, content := range map[string]string{
		`{{- include "longhorn.labels" . | nindent 4 }}`: "",
		`{{ include "release_namespace" . }}`:            longhornvalues.Namespace,
	} {
		data = bytes.ReplaceAll(data, []byte(place), []byte(content))
	}
	if at := bytes.Index(data, []byte("{{")); at >= 0 {
		return nil, fmt.Errorf("line %d has a place that only the chart can fill in", bytes.Count(data[:at], []byte("\n"))+1)
	}
	return data, nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// untar reads the regular files of a tar, gzipped or not, into memory: manifests are small.
func untar(data []byte) (map[string][]byte, error) {
	data, err := plain(data)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	tr := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if out[path.Clean(h.Name)], err = io.ReadAll(tr); err != nil {
			return nil, err
		}
	}
}
