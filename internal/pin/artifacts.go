package pin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// The artifacts that environments are made of. A name says what the content is
// for; its form follows from the kind: a release file from a URL, and the tar of
// a directory, or one file, from a Go module.
const (
	ArtifactK3s        = "k3s"              // the binary
	ArtifactK3sImages  = "k3s-images"       // its container images for a closed network
	ArtifactCilium     = "cilium-chart"     // Helm chart
	ArtifactGatewayAPI = "gateway-api-crds" // standard channel
	ArtifactLonghorn   = "longhorn-chart"   // Helm chart
	ArtifactLonghornCR = "longhorn-crds"    // resource definitions only; the chart is in no Go module
	ArtifactFlux       = "flux-components"  // controllers' manifests: all in one file, or what kustomize makes that of
	ArtifactImages     = "images"           // an archive of container images from this machine, in place of registries
)

// recipe is where one artifact comes from. In it, $V stands for the version as
// the profile has it and $U for the same in a URL.
type recipe struct {
	name, version    string
	url              string
	module, inModule string // "" where no module has it
	moduleName       string // another name for the module's content, which is not the same
	onlyFile         bool   // wanted only where sources.files names one
}

const github = "https://github.com/"

func recipes(c *cluster.Cluster) []recipe {
	k3s := github + "k3s-io/k3s/releases/download/$U/"
	list := []recipe{
		{name: ArtifactK3s, version: c.K3s.Version, url: k3s + "k3s"},
		{name: ArtifactK3sImages, version: c.K3s.Version, url: k3s + "k3s-airgap-images-amd64.tar.zst"},
		{name: ArtifactCilium, version: c.Cilium.Version, url: "https://helm.cilium.io/cilium-$V.tgz",
			module: "github.com/cilium/cilium@v$V", inModule: "install/kubernetes/cilium"},
		{name: ArtifactFlux, version: c.Flux.Version, url: github + "fluxcd/flux2/releases/download/v$V/install.yaml",
			module: "github.com/fluxcd/flux2/v2@v$V", inModule: "manifests"},
	}
	if c.Cilium.GatewayAPI {
		list = append(list, recipe{name: ArtifactGatewayAPI, version: c.Cilium.GatewayAPIVersion,
			url:    github + "kubernetes-sigs/gateway-api/releases/download/v$V/standard-install.yaml",
			module: "sigs.k8s.io/gateway-api@v$V", inModule: "config/crd/standard"})
	}
	if c.Longhorn.Enabled {
		list = append(list, recipe{name: ArtifactLonghorn, version: c.Longhorn.Version,
			url:    github + "longhorn/charts/releases/download/longhorn-$V/longhorn-$V.tgz",
			module: "github.com/longhorn/longhorn-manager@v$V", inModule: "k8s/crds.yaml", moduleName: ArtifactLonghornCR})
	}
	return append(list, recipe{name: ArtifactImages, version: "local", onlyFile: true})
}

// WantArtifacts lists the artifacts of an environment, sorted by name, each from
// the source that its profile chooses and without a digest. One that the
// profile's choice cannot give says so in Unpinned.
func WantArtifacts(c *cluster.Cluster) []Artifact {
	var out []Artifact
	for _, r := range recipes(c) {
		if !r.onlyFile || c.Sources.Files[r.name] != "" {
			out = append(out, r.artifact(c.Sources))
		}
	}
	slices.SortFunc(out, func(a, b Artifact) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (r recipe) artifact(s cluster.Sources) Artifact {
	a := Artifact{Name: r.name, Version: r.version, Kind: KindURL, Source: r.fill(r.url)}
	if file := s.Files[r.name]; file != "" {
		a.Kind, a.Source = KindFile, file
		return a
	}
	if s.From != cluster.OriginGoModule {
		return a
	}
	if r.module == "" {
		a.Unpinned = "the profile takes its inputs from Go modules, and none has it; sources.files." + r.name + " can name a file"
		return a
	}
	if r.moduleName != "" {
		a.Name = r.moduleName
	}
	a.Kind, a.Source, a.Subdir = KindGoModule, r.fill(r.module), r.inModule
	return a
}

// fill puts the version in. k3s's versions hold a plus sign, which stands for a
// blank in some servers' reading of URLs.
func (r recipe) fill(s string) string {
	return strings.NewReplacer("$V", r.version, "$U", strings.ReplaceAll(r.version, "+", "%2B")).Replace(s)
}

// CheckFiles refuses a name in sources.files that no artifact has: it would be
// passed over in silence.
func CheckFiles(c *cluster.Cluster) error {
	var known []string
	for _, r := range recipes(c) {
		known = append(known, r.name)
	}
	for name := range c.Sources.Files {
		if !slices.Contains(known, name) {
			return fmt.Errorf("sources.files names %q, which is no input of this profile (%s)", name, strings.Join(known, ", "))
		}
	}
	return nil
}
