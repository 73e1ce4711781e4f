package bootstrap

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/profilefile"
)

const profile = "../../profiles/lab.yaml"

// parts is what a build brings into a cluster.
type parts struct {
	cluster  cluster.Cluster
	dir      string // of the bundle
	chart    []byte // Cilium's
	gateway  []map[string]any
	longhorn []map[string]any
	template []byte // Longhorn's definitions as they are in its chart
	flux     []map[string]any
}

// load makes a bundle as a build does: from what the lab profile's lock names, out of
// the cache, and fetched first where it is not there. The lab does without Envoy and
// Hubble; here both are wanted, because more is installed then.
func load(t testing.TB) parts {
	t.Helper()
	p, err := profilefile.Load(profile)
	must(t, err)
	out := parts{cluster: p.Cluster, dir: os.Getenv(envBundle)}
	out.cluster.Cilium.Envoy, out.cluster.Cilium.Hubble = true, true
	out.cluster.Flux.URL, out.cluster.Flux.Path = "https://git.lab.test/fleet", "clusters/lab"
	if out.dir == "" {
		out.dir = t.TempDir()
		inputs := fetchInputs(t)
		must(t, bundle.Make(t.Context(), inputs, out.dir))
		out.template = read(t, inputs[pin.ArtifactLonghornCR])
	}
	objects := func(name string) []map[string]any {
		found, err := kube.Decode(name, read(t, filepath.Join(out.dir, name)))
		must(t, err)
		return found
	}
	out.chart = read(t, filepath.Join(out.dir, bundle.Cilium))
	out.gateway, out.flux = objects(bundle.GatewayAPI), objects(bundle.Flux)
	out.longhorn = longhorn.Adoptable(objects(bundle.LonghornCR))
	return out
}

// fetchInputs are the files of the inputs that a bundle is made of.
func fetchInputs(t testing.TB) bundle.Inputs {
	t.Helper()
	lock, err := pinning.Read(profile)
	must(t, err)
	dir, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	cache, err := cas.Open(dir)
	must(t, err)
	in := bundle.Inputs{}
	for _, a := range lock.Artifacts {
		if a.Unpinned == "" && a.Kind == pin.KindGoModule {
			_, err := fetch.Fetcher{Cache: cache, Profile: profile}.Artifacts(t.Context(), lock, a.Name)
			must(t, err)
			in[a.Name] = cache.Path(a.Digest)
		}
	}
	return in
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pack is a tar of files.
func pack(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := w.Write(files[name])
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// digest is that of the chart, as the index of a build has it.
func (p parts) digest() digest.Digest { return digest.Of(p.chart) }

// kubernetes is the version of the API server.
const kubernetes = "v1.34.4"
