package material

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	bootgitops "github.com/slipway/slipway/internal/bootstrap/gitops"
	"github.com/slipway/slipway/internal/bootstrap/parity"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/payload/gitops"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/yamlform"
	"github.com/slipway/slipway/internal/secrets"
)

// Payload is what the build holds for a cluster's beginning. Charts are archives,
// the others YAML; what the build does not have is empty.
type Payload struct {
	Cilium, Longhorn    []byte
	Gateway             []byte // definitions of the Gateway API
	LonghornDefinitions []byte // of a build without Longhorn's chart
	Flux                []byte // its components
	Images              []byte // names of the container images in the build, one a line
}

// Network is the release of Cilium as the profile wants it.
func (p *Payload) Network(c cluster.Cluster) chart.Release {
	return chart.Release{Name: "cilium", Namespace: "kube-system", Archive: p.Cilium, Values: ciliumvalues.Values(c)}
}

// Storage is the release of Longhorn as the profile wants it.
func (p *Payload) Storage(c cluster.Cluster) chart.Release {
	return chart.Release{Name: "longhorn", Namespace: longhornvalues.Namespace, Archive: p.Longhorn, Values: longhornvalues.Values(c)}
}

// helmRepository is where a chart comes from when it is not in the repository.
func helmRepository(chart string) string {
	if chart == "longhorn" {
		return "https://charts.longhorn.io"
	}
	return "https://helm.cilium.io/"
}

// Releases are the releases that Flux adopts.
func (p *Payload) Releases(c cluster.Cluster) []chart.Release {
	out := []chart.Release{p.Network(c)}
	if c.Longhorn.Enabled && len(p.Longhorn) > 0 {
		out = append(out, p.Storage(c))
	}
	return out
}

// starter is what the first commit of the repository is made from.
func (p *Payload) starter(s Settings, recipients []string, existing bootgitops.Files) (gitops.Input, error) {
	in := gitops.From(s.Cluster)
	in.Recipients, in.Existing, in.Extra = recipients, existing, map[string][]byte{}
	for _, r := range p.Releases(s.Cluster) {
		name, version, err := chart.Identity(r)
		if err != nil {
			return in, err
		}
		c := gitops.Chart{Name: name, Namespace: r.Namespace, Version: version, Values: r.Values, Repository: helmRepository(name)}
		if s.Cluster.Sources.From == cluster.OriginGoModule {
			c.Repository = ""
			files, err := chart.Files(r)
			if err != nil {
				return in, err
			}
			for file, data := range files {
				in.Extra[path.Join("charts", name, file)] = data
			}
		}
		in.Charts = append(in.Charts, c)
	}
	return in, p.system(s.Cluster, in.Extra)
}

// system adds Flux itself, so that it is upgraded through the repository too.
func (p *Payload) system(c cluster.Cluster, files map[string][]byte) error {
	dir := path.Join(c.Flux.Path, fluxsync.Namespace)
	var sync []byte
	for _, o := range fluxsync.Objects(c, fluxsync.Options{}) {
		doc, err := yamlform.Marshal("---\n", o)
		if err != nil {
			return err
		}
		sync = append(sync, doc...)
	}
	if len(sync) == 0 {
		return nil
	}
	files[path.Join(dir, "sync.yaml")] = sync
	if len(p.Flux) > 0 {
		files[path.Join(dir, "components.yaml")] = p.Flux
	}
	return nil
}

// pinned is a release's chart as the parity gate sees it.
type pinned struct {
	release chart.Release
	caps    chart.Caps
}

func (p pinned) with(values map[string]any) chart.Release {
	r := p.release
	r.Values = values
	return r
}

func (p pinned) Effective(values map[string]any) (map[string]any, error) {
	return chart.Effective(p.with(values))
}

func (p pinned) Render(values map[string]any) ([]map[string]any, error) {
	return chart.Render(p.with(values), p.caps)
}

func (p pinned) Files() (map[string][]byte, error) { return chart.Files(p.release) }

// accept judges a repository against what the profile would install.
func (p *Payload) accept(s Settings, ids secrets.Identities, files bootgitops.Files) error {
	tree, err := bootgitops.Build(files, bootgitops.Options{
		Path: s.Cluster.Flux.Path, Name: fluxsync.Name, Encrypted: secrets.Encrypted,
		Open: func(data []byte) ([]byte, error) { return secrets.Decrypt(data, ids) },
	})
	if err != nil {
		return err
	}
	verdicts, err := p.Judge(s.Cluster, tree, nil)
	if err != nil {
		return err
	}
	return verdicts.Err()
}

// Verdicts are the verdicts on all releases that Flux adopts, by name.
type Verdicts map[string]parity.Verdict

// Err is an error with the findings of all, or nil.
func (v Verdicts) Err() error {
	var all diag.List
	for _, name := range slices.Sorted(maps.Keys(v)) {
		for _, f := range v[name].Findings {
			all.Add(f)
		}
	}
	return all.Err()
}

// Judge compares the repository with the releases: with the values that run, where
// running has them, else with those of the profile.
func (p *Payload) Judge(c cluster.Cluster, tree *bootgitops.Tree, running map[string]map[string]any) (Verdicts, error) {
	out := Verdicts{}
	for _, r := range p.Releases(c) {
		if values, ok := running[r.Name]; ok {
			r.Values = values
		}
		name, version, err := chart.Identity(r)
		if err != nil {
			return nil, err
		}
		verdict, err := parity.Judge(
			parity.Release{Name: r.Name, Namespace: r.Namespace, Chart: name, Version: version, Values: r.Values},
			pinned{r, caps(c)}, repository{tree})
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", r, err)
		}
		out[r.Name] = verdict
	}
	return out, nil
}

// caps is what charts are rendered for: the kinds that they ask for are there by the
// time they are installed.
func caps(c cluster.Cluster) chart.Caps {
	version, _, _ := strings.Cut(c.K3s.Version, "+") // v1.34.4+k3s1
	caps := chart.Caps{Kubernetes: version}
	if c.ServesGateways() {
		caps.Kinds = []string{"gateway.networking.k8s.io/v1/GatewayClass"}
	}
	return caps
}
