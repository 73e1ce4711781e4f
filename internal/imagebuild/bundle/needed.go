package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/imageset"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
)

// Need is a container image, in full form, and the artifact that asks for it.
type Need struct{ Image, For string }

// Needs are the container images that everything of the bundle in dir needs when it
// is installed as bootstrap does, sorted, each once.
func Needs(dir string, c cluster.Cluster) ([]Need, error) {
	var out []Need
	for _, r := range recipes() {
		data, err := os.ReadFile(filepath.Join(dir, r.file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var objects []map[string]any
		if err == nil {
			objects, err = r.objects(data, c)
		}
		if err != nil {
			return nil, fmt.Errorf("container images of the bundle: %w", err)
		}
		for _, image := range imageset.Of(objects) {
			if !slices.ContainsFunc(out, func(n Need) bool { return n.Image == image }) {
				out = append(out, Need{image, r.artifact})
			}
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return strings.Compare(a.Image, b.Image) })
	return out, nil
}

// objects are what a file of the bundle becomes in the cluster.
func (r recipe) objects(data []byte, c cluster.Cluster) ([]map[string]any, error) {
	release := chart.Release{Archive: data}
	switch r.file {
	case Cilium:
		release.Name, release.Namespace, release.Values = ciliumvalues.Release, ciliumvalues.Namespace, ciliumvalues.Values(c)
	case Longhorn:
		release.Name, release.Namespace, release.Values = longhornvalues.Release, longhornvalues.Namespace, longhornvalues.Values(c)
	default:
		return kube.Decode(r.file, data)
	}
	// The version of the API server without what k3s adds to it.
	kubernetes, _, _ := strings.Cut(c.K3s.Version, "+")
	return chart.Render(release, chart.Caps{Kubernetes: kubernetes})
}
