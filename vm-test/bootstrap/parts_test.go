package bootstrap

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/profilefile"
)

const profile = "../../profiles/lab.yaml"

// parts is what a build brings into a cluster.
type parts struct {
	cluster    cluster.Cluster
	chart      []byte // Cilium's
	digest     digest.Digest
	gateway    []map[string]any
	longhorn   []map[string]any
	template   []byte // Longhorn's definitions as they are in its chart
	flux       []map[string]any
	kubernetes string
}

// load takes the parts out of the cache, and fetches what is not there, as a build
// does: by the lock of the lab profile. The lab does without Envoy and Hubble; here
// both are wanted, because more is installed then.
func load(t testing.TB) parts {
	t.Helper()
	p, err := profilefile.Load(profile)
	must(t, err)
	lock, err := pinning.Read(profile)
	must(t, err)
	dir, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	cache, err := cas.Open(dir)
	must(t, err)
	names := []string{pin.ArtifactCilium, pin.ArtifactGatewayAPI, pin.ArtifactLonghornCR, pin.ArtifactFlux}
	_, err = fetch.Fetcher{Cache: cache, Profile: profile}.Artifacts(t.Context(), lock, names...)
	must(t, err)
	blob := func(name string) []byte {
		data, err := os.ReadFile(cache.Path(lock.Artifact(name).Digest))
		must(t, err)
		return data
	}
	out := parts{cluster: p.Cluster, chart: blob(pin.ArtifactCilium), digest: lock.Artifact(pin.ArtifactCilium).Digest, kubernetes: "v1.34.4"}
	out.cluster.Cilium.Envoy, out.cluster.Cilium.Hubble = true, true
	out.cluster.Flux.URL, out.cluster.Flux.Path = "https://git.lab.test/fleet", "clusters/lab"
	for name, data := range untar(t, blob(pin.ArtifactGatewayAPI)) {
		out.gateway = append(out.gateway, decode(t, name, data)...)
	}
	out.template = blob(pin.ArtifactLonghornCR)
	plain, err := longhorn.Plain(out.template)
	must(t, err)
	out.longhorn = longhorn.Adoptable(decode(t, "longhorn", plain))
	if path := os.Getenv(envFlux); path != "" {
		data, err := os.ReadFile(path)
		must(t, err)
		out.flux = decode(t, path, data)
		return out
	}
	out.flux = fluxObjects(t, untar(t, blob(pin.ArtifactFlux)))
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decode(t testing.TB, name string, data []byte) []map[string]any {
	t.Helper()
	objects, err := kube.Decode(name, data)
	must(t, err)
	return objects
}

// untar is the content of a tar without its one top directory.
func untar(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		_, name, _ := strings.Cut(h.Name, "/")
		files[name] = content
	}
}

// controllers are the parts of Flux that bootstrap needs.
func controllers() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller"}
}

// release finds the version of a controller in the base of Flux that fetches it.
var release = regexp.MustCompile(`https://github.com/fluxcd/([a-z-]+)/releases/download/(v[0-9.]+)/[a-z-]+\.(crds|deployment)\.yaml`)

// fluxObjects builds Flux's manifests from its bases, with what those would fetch
// taken out of the controllers' modules.
func fluxObjects(t testing.TB, files map[string][]byte) []map[string]any {
	t.Helper()
	mem := filesys.MakeFsInMemory()
	for name, data := range files {
		must(t, mem.WriteFile("/flux/"+name, data))
	}
	top := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: flux-system\n" +
		"resources: [../install/namespace.yaml, ../rbac, ../policies"
	images := "images:\n"
	for _, c := range controllers() {
		base := "/flux/bases/" + c + "/kustomization.yaml"
		text, err := mem.ReadFile(base)
		must(t, err)
		found := release.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s names no release", base)
		}
		version := string(found[2])
		must(t, mem.WriteFile(base, release.ReplaceAll(text, []byte("$3.yaml"))))
		m, err := gomod.Download(t.Context(), "github.com/fluxcd/"+c+"@"+version)
		must(t, err)
		must(t, mem.WriteFile("/flux/bases/"+c+"/crds.yaml", concat(t, m.Dir, "config/crd/bases")))
		must(t, mem.WriteFile("/flux/bases/"+c+"/deployment.yaml", concat(t, m.Dir, "config/manager")))
		top += ", ../bases/" + c
		images += "- {name: fluxcd/" + c + ", newName: ghcr.io/fluxcd/" + c + ", newTag: " + version + "}\n"
	}
	must(t, mem.WriteFile("/flux/ours/kustomization.yaml", []byte(top+"]\ntransformers: [labels.yaml]\n"+images)))
	must(t, mem.WriteFile("/flux/ours/labels.yaml", files["install/labels.yaml"]))
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // the labels lie beside
	built, err := krusty.MakeKustomizer(options).Run(mem, "/flux/ours")
	must(t, err)
	text, err := built.AsYaml()
	must(t, err)
	return decode(t, "flux", text)
}

// concat joins the objects' files of a directory.
func concat(t testing.TB, dir, sub string) []byte {
	t.Helper()
	entries, err := os.ReadDir(path.Join(dir, sub))
	must(t, err)
	var out [][]byte
	for _, e := range entries {
		if e.Name() == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(path.Join(dir, sub, e.Name()))
		must(t, err)
		out = append(out, data)
	}
	if len(out) == 0 {
		t.Fatalf("%s/%s has no files", dir, sub)
	}
	return bytes.Join(slices.Clip(out), []byte("\n---\n"))
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
