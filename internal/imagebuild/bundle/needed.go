package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/imageset"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
)

// Objects renders everything of the bundle in dir as bootstrap will install it.
func Objects(dir string, c cluster.Cluster) ([]map[string]any, error) {
	caps := chart.Caps{Kubernetes: kubernetes(c)}
	if c.Cilium.GatewayAPI {
		caps.Kinds = []string{"gateway.networking.k8s.io/v1/GatewayClass"}
	}
	var out []map[string]any
	for _, r := range []struct {
		file string
		chart.Release
	}{
		{Cilium, chart.Release{Name: ciliumvalues.Release, Namespace: ciliumvalues.Namespace, Values: ciliumvalues.Values(c)}},
		{Longhorn, chart.Release{Name: longhornvalues.Release, Namespace: longhornvalues.Namespace, Values: longhornvalues.Values(c)}},
	} {
		data, err := os.ReadFile(filepath.Join(dir, r.file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.Archive = data
		objects, err := chart.Render(r.Release, caps)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	for _, file := range []string{GatewayAPI, LonghornCR, Flux} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		objects, err := kube.Decode(file, data)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// Needed are the container images of everything in the bundle, in full form, sorted.
func Needed(dir string, c cluster.Cluster) ([]string, error) {
	objects, err := Objects(dir, c)
	if err != nil {
		return nil, fmt.Errorf("container images of the bundle: %w", err)
	}
	return imageset.Of(objects), nil
}

// kubernetes is the version of the API server without what k3s adds to it.
func kubernetes(c cluster.Cluster) string {
	v, _, _ := strings.Cut(c.K3s.Version, "+")
	return v
}
