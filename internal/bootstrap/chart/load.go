// Package chart renders Helm charts without a cluster, and makes releases be as
// they are wanted with one. Charts come as archives in memory; nothing is looked up
// in a repository, and no schema is fetched.
package chart

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/slipway/slipway/internal/digest"
)

// Release is a release as it is wanted.
type Release struct {
	Name      string
	Namespace string
	Archive   []byte         // a tar with one directory, packed by gzip or not
	Digest    digest.Digest  // of Archive; the zero digest is not compared
	Values    map[string]any // beyond the chart's own
}

// String is how people write it: kube-system/cilium.
func (r Release) String() string { return r.Namespace + "/" + r.Name }

// load reads the chart of a release out of its archive.
func (r Release) load() (*chart.Chart, error) {
	if got := digest.Of(r.Archive); !r.Digest.IsZero() && got != r.Digest {
		return nil, fmt.Errorf("chart of release %s: %w: it is %s, the build says %s", r, digest.ErrMismatch, got, r.Digest)
	}
	packed := r.Archive
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		var err error
		if packed, err = pack(r.Archive); err != nil {
			return nil, fmt.Errorf("chart of release %s: %w", r, err)
		}
	}
	c, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("chart of release %s: %w", r, err)
	}
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(in *chart.Chart) bool { return in.Name() == d.Name }) {
			return nil, fmt.Errorf("chart of release %s: it needs chart %s, which is not in its archive", r, d.Name)
		}
	}
	return c, nil
}

// pack makes what Helm's reader wants of a plain tar, fast: it is read at once.
func pack(tar []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(tar); err != nil {
		return nil, err
	}
	err = w.Close() // before the bytes are taken: it writes the last of them
	return out.Bytes(), err
}

// values are a release's values in the form in which Helm keeps them: as JSON
// decodes them, so that 1 and 1.0 are the same and a typed list is a list.
func values(given map[string]any) (map[string]any, error) {
	out := map[string]any{}
	data, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}

// sum names the content of a chart: that of an archive and that kept in a release
// have the same if nothing in them differs.
func sum(c *chart.Chart) (digest.Digest, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{c.Metadata, c.Values, c.Schema}); err != nil {
		return digest.Digest{}, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	files := slices.Concat(c.Templates, c.Files)
	slices.SortStableFunc(files, func(a, b *chart.File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.Name, len(f.Data))
		h.Write(f.Data)
	}
	return digest.FromHash(h), nil
}

// Caps is what a chart is rendered for.
type Caps struct {
	Kubernetes string   // version of the API server, such as v1.34.4
	Kinds      []string // served beyond Kubernetes' own, such as gateway.networking.k8s.io/v1/GatewayClass
}

func (c Caps) helm() (*chartutil.Capabilities, error) {
	caps := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(c.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes: %w", err)
	}
	caps.KubeVersion = *version
	for _, kind := range c.Kinds {
		caps.APIVersions = append(caps.APIVersions, kind)
		if at := strings.LastIndex(kind, "/"); at > 0 {
			caps.APIVersions = append(caps.APIVersions, kind[:at])
		}
	}
	return caps, nil
}
