package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/pin"
)

// flux is what Flux's installer would apply: of a release's one file the documents
// of the controllers that a cluster gets; of the module's sources what kustomize
// makes of them, with each controller's own sources in the place of its release.
func flux(in Inputs, data []byte) ([]byte, error) {
	if !isTar(data) && !isGzip(data) {
		return chosen(data)
	}
	files, err := untar(data)
	if err != nil {
		return nil, err
	}
	if files["manifests/install/kustomization.yaml"] == nil {
		return nil, errors.New("there is no manifests/install/kustomization.yaml in it")
	}
	have := map[string]bool{}
	for _, name := range pin.FluxControllers {
		source, ok := in["flux-"+name]
		if !ok {
			continue // said where the lock is read
		}
		more, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		config, err := untar(more)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for file, content := range config {
			files[path.Join("controllers", name, file)] = content
		}
		have[name] = true
	}
	if len(have) == 0 {
		return nil, errors.New("none of its controllers is there")
	}
	return build(local(files, have))
}

// fromRelease is a line of a kustomization that takes a part of a controller from a
// release, of the names that Flux's projects give them.
var fromRelease = regexp.MustCompile(`(?m)^(\s*- )https://github\.com/fluxcd/([a-z-]+)/releases/download/[^/]+/[a-z-]+\.(crds|deployment)\.yaml\s*$`)

// base is a line that takes a controller's base.
var base = regexp.MustCompile(`(?m)^\s*- \.\./bases/([a-z-]+)\s*\n`)

// local makes kustomizations take what lies beside them, and leaves out the
// controllers that are not there.
func local(files map[string][]byte, have map[string]bool) map[string][]byte {
	sources := map[string]string{"crds": "crd", "deployment": "manager"}
	for name, text := range files {
		if path.Base(name) != "kustomization.yaml" || !strings.HasPrefix(name, "manifests/") {
			continue
		}
		text = fromRelease.ReplaceAllFunc(text, func(line []byte) []byte {
			m := fromRelease.FindSubmatch(line)
			return fmt.Appendf(nil, "%s../../../controllers/%s/config/%s", m[1], m[2], sources[string(m[3])])
		})
		files[name] = base.ReplaceAllFunc(text, func(line []byte) []byte {
			if have[string(base.FindSubmatch(line)[1])] {
				return line
			}
			return nil
		})
	}
	return files
}

func build(files map[string][]byte) ([]byte, error) {
	mem := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := mem.WriteFile("/"+name, text); err != nil {
			return nil, err
		}
	}
	o := krusty.MakeDefaultOptions()
	o.LoadRestrictions = types.LoadRestrictionsNone // bases lie beside
	built, err := krusty.MakeKustomizer(o).Run(mem, "/manifests/install")
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}

// component is the label by which Flux's objects say which controller they belong to.
const component = "app.kubernetes.io/component"

// chosen are the documents that belong to no controller, or to one of ours.
func chosen(data []byte) ([]byte, error) {
	var out bytes.Buffer
	for i, text := range bytes.Split(data, []byte("\n---\n")) {
		var doc struct {
			Metadata struct {
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if c := doc.Metadata.Labels[component]; c != "" && !slices.Contains(pin.FluxControllers, c) {
			continue
		}
		text = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("---")))
		if len(text) == 0 {
			continue
		}
		out.WriteString("---\n")
		out.Write(text)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}
