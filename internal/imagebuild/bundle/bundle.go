// Package bundle makes what a cluster starts with from pinned inputs: charts and
// manifests in the forms in which bootstrap installs them, whatever the source that
// they came from, and tells which container images they need.
package bundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway/slipway/internal/pin"
)

// Files of a bundle.
const (
	Cilium     = "cilium.tgz"
	Longhorn   = "longhorn.tgz"
	LonghornCR = "longhorn-crds.yaml" // where the chart, which has them, is not to be had
	GatewayAPI = "gateway-api.yaml"
	Flux       = "flux.yaml"
	Images     = "images.txt" // container images that all of these need, one a line
)

// Inputs are the pinned inputs that could be had: name of the artifact to its file.
type Inputs map[string]string

// recipe makes one file of a bundle from one input and what followed it.
type recipe struct {
	artifact, file string
	make           func(in Inputs, data []byte) ([]byte, error)
}

func recipes() []recipe {
	return []recipe{
		{pin.ArtifactCilium, Cilium, chartArchive},
		{pin.ArtifactLonghorn, Longhorn, chartArchive},
		{pin.ArtifactLonghornCR, LonghornCR, definitions},
		{pin.ArtifactGatewayAPI, GatewayAPI, documents},
		{pin.ArtifactFlux, Flux, flux},
	}
}

// Takes reports whether something in a bundle is made of an artifact.
func Takes(a pin.Artifact) bool {
	return slices.ContainsFunc(recipes(), func(r recipe) bool { return r.artifact == a.Name || r.artifact == a.For && a.Kind != pin.KindImage })
}

// Make writes the files of a bundle into dir. An input that is not there makes no
// file. The same inputs give the same bytes.
func Make(ctx context.Context, in Inputs, dir string) error {
	for _, r := range recipes() {
		path, ok := in[r.artifact]
		if !ok {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		data, err := os.ReadFile(path)
		if err == nil {
			data, err = r.make(in, data)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, r.file), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s out of %s: %w", r.file, r.artifact, err)
		}
	}
	return nil
}

// chartArchive is a chart as Helm has it: a gzipped tar. A module gives a plain one.
func chartArchive(_ Inputs, data []byte) ([]byte, error) {
	if isGzip(data) {
		return data, nil
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// isTar looks for the magic of a tar header (POSIX.1-2001, ustar).
func isTar(data []byte) bool { return len(data) > 512 && bytes.Equal(data[257:262], []byte("ustar")) }

// plain unpacks what is gzipped.
func plain(data []byte) ([]byte, error) {
	if !isGzip(data) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
