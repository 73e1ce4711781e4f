package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/payload/imageset"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/profilefile"
)

const lab = "../../../profiles/lab.yaml"

// inputs takes what the lab's lock has pinned out of the modules of this machine; no
// test asks the network.
func inputs(t *testing.T) (bundle.Inputs, cluster.Cluster) {
	t.Helper()
	p, err := profilefile.Load(lab)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := pinning.Read(lab)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	in := bundle.Inputs{}
	for _, a := range lock.Artifacts {
		if a.Unpinned != "" || a.Kind != pin.KindGoModule {
			continue
		}
		if _, err := (fetch.Fetcher{Cache: cache, Profile: lab}).Artifacts(t.Context(), lock, a.Name); err != nil {
			t.Skipf("%s is not on this machine (imagebuild fetch --artifacts -p %s brings it): %v", a.Source, lab, err)
		}
		in[a.Name] = cache.Path(a.Digest)
	}
	return in, p.Cluster
}

func kinds(objects []map[string]any) map[string]int {
	out := map[string]int{}
	for _, o := range objects {
		out[object.Of(o).Kind]++
	}
	return out
}

// The real inputs of the lab give what a cluster starts with, twice the same.
func TestRealInputs(t *testing.T) {
	in, c := inputs(t)
	dir, again := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, again} {
		if err := bundle.Make(t.Context(), in, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{bundle.Cilium, bundle.LonghornCR, bundle.GatewayAPI, bundle.Flux} {
		a, b := read(t, dir, name), read(t, again, name)
		if !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %d and %d bytes", name, len(a), len(b))
		}
	}
	for name, want := range map[string]map[string]int{
		bundle.GatewayAPI: {"CustomResourceDefinition": 8, "ValidatingAdmissionPolicy": 1, "ValidatingAdmissionPolicyBinding": 1},
		bundle.LonghornCR: {"CustomResourceDefinition": 22},
		bundle.Flux:       {"Deployment": 3, "Namespace": 1, "NetworkPolicy": 3, "ServiceAccount": 3, "ResourceQuota": 1},
	} {
		objects, err := kube.Decode(name, read(t, dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := kinds(objects)
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s has %d of %s, want %d: %v", name, got[kind], kind, n, got)
			}
		}
	}
	need, err := bundle.Needs(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []bundle.Need{
		{"ghcr.io/fluxcd/helm-controller:v1.6.4", pin.ArtifactFlux}, {"ghcr.io/fluxcd/kustomize-controller:v1.9.5", pin.ArtifactFlux},
		{"ghcr.io/fluxcd/source-controller:v1.9.5", pin.ArtifactFlux},
		{"quay.io/cilium/cilium:v1.20.2", pin.ArtifactCilium}, {"quay.io/cilium/operator-generic:v1.20.2", pin.ArtifactCilium},
	}
	if !slices.Equal(need, want) {
		t.Errorf("it needs %q", need)
	}
}

// What Flux's parts become is what its release has: patched, labelled, in one namespace.
func TestFluxFromModules(t *testing.T) {
	in, _ := inputs(t)
	dir := t.TempDir()
	if err := bundle.Make(t.Context(), in, dir); err != nil {
		t.Fatal(err)
	}
	objects, err := kube.Decode(bundle.Flux, read(t, dir, bundle.Flux))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if object.Text(o, "kind") != "Deployment" {
			continue
		}
		name := object.Text(o, "metadata", "name")
		labels, _ := object.At(o, "metadata", "labels").(map[string]any)
		if labels["app.kubernetes.io/component"] != name || labels["app.kubernetes.io/instance"] != "flux-system" || object.Text(o, "metadata", "namespace") != "flux-system" {
			t.Errorf("%s: %v", name, o["metadata"])
		}
		if object.Text(o, "spec", "template", "spec", "serviceAccountName") != name || object.Text(o, "spec", "template", "spec", "priorityClassName") == "" {
			t.Errorf("%s is not patched", name)
		}
		if got := imageset.Of([]map[string]any{o}); len(got) != 1 || !strings.HasPrefix(got[0], "ghcr.io/fluxcd/"+name+":v") {
			t.Errorf("%s: image %q", name, got)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Releases in their upstream forms: what is packed already stays bit for bit, one
// file of documents stays, and of Flux's only our controllers do.
func TestUpstreamForms(t *testing.T) {
	tgz := gzipped(t, archive(t, map[string]string{"cilium/Chart.yaml": "name: cilium\n"}))
	crds := "apiVersion: v1\nkind: A\n---\nkind: B\n"
	install := "---\nkind: Namespace\n---\nkind: Deployment\nmetadata:\n  labels:\n    app.kubernetes.io/component: source-controller\n" +
		"---\nkind: Deployment\nmetadata:\n  labels:\n    app.kubernetes.io/component: image-reflector-controller\n---\nkind: Last\n"
	dir := t.TempDir()
	in := bundle.Inputs{pin.ArtifactCilium: file(t, tgz), pin.ArtifactGatewayAPI: file(t, []byte(crds)), pin.ArtifactFlux: file(t, []byte(install))}
	if err := bundle.Make(t.Context(), in, dir); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, dir, bundle.Cilium), tgz) || string(read(t, dir, bundle.GatewayAPI)) != crds {
		t.Error("a release's own form was changed")
	}
	flux := string(read(t, dir, bundle.Flux))
	if strings.Contains(flux, "image-reflector") || strings.Count(flux, "---\n") != 3 || !strings.Contains(flux, "kind: Last") {
		t.Errorf("got\n%s", flux)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("made %v", entries)
	}
}

func TestBadInputs(t *testing.T) {
	for name, tt := range map[string]struct {
		in   bundle.Inputs
		want string
	}{
		"flux without an installation": {bundle.Inputs{pin.ArtifactFlux: file(t, archive(t, map[string]string{"manifests/x": "y"}))}, "flux.yaml out of flux-components: there is no manifests/install"},
		"flux without controllers":     {bundle.Inputs{pin.ArtifactFlux: file(t, archive(t, map[string]string{"manifests/install/kustomization.yaml": "resources: []\n"}))}, "none of its controllers"},
		"definitions with a new place": {bundle.Inputs{pin.ArtifactLonghornCR: file(t, []byte("a: 1\nb: {{ .Values.x }}\n"))}, "line 2 has a place"},
		"not there":                    {bundle.Inputs{pin.ArtifactCilium: filepath.Join(t.TempDir(), "x")}, "cilium.tgz out of cilium-chart"},
	} {
		if err := bundle.Make(t.Context(), tt.in, t.TempDir()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, bundle.Cilium), gzipped(t, []byte("no tar")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Needs(dir, cluster.Cluster{}); err == nil || !strings.Contains(err.Error(), "container images of the bundle") {
		t.Errorf("a broken chart: %v", err)
	}
}

func TestHeld(t *testing.T) {
	docker := archive(t, map[string]string{"manifest.json": `[{"Config":"x.json","RepoTags":["rancher/mirrored-pause:3.6","quay.io/x/y:1"]},{"RepoTags":null}]`, "x.json": "{}"})
	oci := archive(t, map[string]string{"./index.json": `{"manifests":[{"annotations":{"io.containerd.image.name":"quay.io/a/b:1","org.opencontainers.image.ref.name":"1"}},
		{"annotations":{"org.opencontainers.image.ref.name":"docker.io/c/d:2"}},{"annotations":{"org.opencontainers.image.ref.name":"3"}},{}]}`})
	for name, tt := range map[string]struct {
		data      []byte
		want      []string
		extension string
	}{
		"docker": {docker, []string{"docker.io/rancher/mirrored-pause:3.6", "quay.io/x/y:1"}, ".tar"},
		"gzip":   {gzipped(t, docker), []string{"docker.io/rancher/mirrored-pause:3.6", "quay.io/x/y:1"}, ".tar.gz"},
		"oci":    {oci, []string{"docker.io/c/d:2", "quay.io/a/b:1"}, ".tar"},
		"zstd":   {compressed(t, oci), []string{"docker.io/c/d:2", "quay.io/a/b:1"}, ".tar.zst"},
	} {
		path := file(t, tt.data)
		got, err := bundle.Held(t.Context(), path)
		extension, xerr := bundle.Extension(path)
		if err != nil || xerr != nil || !slices.Equal(got, tt.want) || extension != tt.extension {
			t.Errorf("%s: %q, %s, %v, %v", name, got, extension, err, xerr)
		}
	}
	for name, data := range map[string][]byte{"empty": nil, "text": []byte(strings.Repeat("text ", 200)), "cut": docker[:300]} {
		if got, err := bundle.Held(t.Context(), file(t, data)); err == nil && len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		} else if err == nil {
			t.Errorf("%s is read as an archive", name)
		}
	}
}
