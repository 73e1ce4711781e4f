// Package gitops is the repository that a cluster starts from: base, one overlay an
// environment, and HelmReleases that adopt what bootstrap installs. It is the first
// commit; from then on the repository belongs to its author.
//
//	clusters/ENV/         what Flux is pointed at: Kustomizations for the two below
//	infrastructure/base/  Cilium and Longhorn, the values that all environments share
//	infrastructure/overlays/ENV/
//	apps/base/, apps/overlays/ENV/
//	charts/               on networks that reach no chart repository
package gitops

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// Chart is one chart that bootstrap installs and Flux adopts.
type Chart struct {
	Name, Namespace string // of the release
	Version         string
	Repository      string         // URL of its Helm repository; empty when the chart lies in the git repository
	Values          map[string]any // the values that bootstrap installs it with
}

// Input is what the repository is made from.
type Input struct {
	Environment string
	Path        string // the cluster's directory, as in the profile's flux.path
	Charts      []Chart
	Recipients  []string          // age public keys that open encrypted files
	Existing    map[string][]byte // what is in the repository; it stays as it is
	Extra       map[string][]byte // more files: charts, and Flux's own manifests
}

// From reads the part of the input that a profile decides.
func From(c cluster.Cluster) Input {
	return Input{Environment: c.Environment, Path: c.Flux.Path}
}

// suffix is how the names of encrypted files end.
const suffix = ".sops.yaml"

// Secret says whether a file has to be encrypted before it is written.
func Secret(name string) bool { return strings.HasSuffix(name, suffix) && path.Base(name) != suffix }

// Starter returns the files to add; those that exist already are not among them.
// Files with the suffix Secret are in the clear.
func Starter(in Input) (map[string][]byte, error) {
	t := &tree{in: in, files: map[string][]byte{}}
	t.text(".sops.yaml", sopsRules(in.Recipients))
	t.text("README.md", readme)
	t.cluster()
	t.infrastructure()
	t.apps()
	maps.Copy(t.files, in.Extra)
	for name := range in.Existing {
		delete(t.files, name)
	}
	return t.files, t.err
}

// tree collects files and the first error.
type tree struct {
	in    Input
	files map[string][]byte
	err   error
}

func (t *tree) text(name, text string) { t.files[name] = []byte(text) }

// docs writes documents, each a map, into one file.
func (t *tree) docs(name, comment string, docs ...any) {
	var out []string
	for _, d := range docs {
		b, err := yamlform.Marshal("", d)
		if err != nil && t.err == nil {
			t.err = fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, string(b))
	}
	t.text(name, comment+strings.Join(out, "---\n"))
}

type m = map[string]any

func meta(name, namespace string) m {
	if namespace == "" {
		return m{"name": name}
	}
	return m{"name": name, "namespace": namespace}
}

// kustomize is a kustomization file.
func (t *tree) kustomize(dir string, resources, patches []string) {
	k := m{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
	var list []any
	for _, p := range patches {
		list = append(list, m{"path": p})
	}
	if len(list) > 0 {
		k["patches"] = list
	}
	t.docs(path.Join(dir, "kustomization.yaml"), "", k)
}

// cluster is what Flux is pointed at.
func (t *tree) cluster() {
	for _, layer := range []struct{ name, after string }{{"infrastructure", ""}, {"apps", "infrastructure"}} {
		spec := m{
			"interval": "10m", "retryInterval": "1m", "timeout": "10m", "prune": true, "wait": true,
			"path":       "./" + layer.name + "/overlays/" + t.in.Environment,
			"sourceRef":  m{"kind": "GitRepository", "name": "flux-system"},
			"decryption": m{"provider": "sops", "secretRef": m{"name": "sops-age"}},
		}
		if layer.after != "" {
			spec["dependsOn"] = []any{m{"name": layer.after}}
		}
		t.docs(path.Join(t.in.Path, layer.name+".yaml"), "",
			m{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": meta(layer.name, "flux-system"), "spec": spec})
	}
}

func (t *tree) infrastructure() {
	var base, patches []string
	for _, c := range t.in.Charts {
		base = append(base, c.Name+".yaml")
		shared, own := t.split(c)
		t.release(c, shared)
		if len(own) > 0 {
			patches = append(patches, c.Name+".yaml")
			t.docs(path.Join("infrastructure/overlays", t.in.Environment, c.Name+".yaml"), "# What only this environment has.\n",
				m{"apiVersion": releaseAPI, "kind": "HelmRelease", "metadata": meta(c.Name, c.Namespace), "spec": m{"values": own}})
		}
	}
	t.kustomize("infrastructure/base", base, nil)
	t.kustomize("infrastructure/overlays/"+t.in.Environment, []string{"../../base"}, patches)
}

func (t *tree) apps() {
	t.docs("apps/base/namespace.yaml", "", m{"apiVersion": "v1", "kind": "Namespace", "metadata": meta("example", "")})
	t.kustomize("apps/base", []string{"namespace.yaml"}, nil)
	dir := "apps/overlays/" + t.in.Environment
	t.docs(path.Join(dir, "example"+suffix), "", m{
		"apiVersion": "v1", "kind": "Secret", "metadata": meta("example", "example"),
		"stringData": m{"password": "change me with sops"},
	})
	t.kustomize(dir, []string{"../../base", "example" + suffix}, nil)
}

// sopsRules tells sops whom to encrypt for, and that names and kinds stay readable.
func sopsRules(recipients []string) string {
	b, err := yamlform.Marshal("# Read by sops: whom it encrypts for.\n", m{"creation_rules": []any{
		m{"path_regex": `.*\.sops\.yaml$`, "encrypted_regex": "^(data|stringData)$", "age": strings.Join(slices.Sorted(slices.Values(recipients)), ",")},
	}})
	if err != nil {
		return ""
	}
	return string(b)
}

// split divides the values of a chart into those that all environments share and
// those of this one. Where the base exists, the overlay holds what differs from it.
func (t *tree) split(c Chart) (shared, own m) {
	if raw, ok := t.in.Existing["infrastructure/base/"+c.Name+".yaml"]; ok {
		base, err := existing(raw)
		if err != nil && t.err == nil {
			t.err = fmt.Errorf("infrastructure/base/%s.yaml: %w", c.Name, err)
		}
		return base, over(base, c.Values)
	}
	return c.Values, nil
}

// over is what laid over base gives want; a value that want lacks is set to null,
// which is how Helm removes one.
func over(base, want m) m {
	out := m{}
	for key := range maps.Keys(base) {
		if _, ok := want[key]; !ok {
			out[key] = nil
		}
	}
	for key, v := range want {
		below, isMap := v.(m)
		there, wasMap := base[key].(m)
		switch {
		case isMap && wasMap:
			if d := over(there, below); len(d) > 0 {
				out[key] = d
			}
		case !same(base[key], v):
			out[key] = v
		}
	}
	return out
}
