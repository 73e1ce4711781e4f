package gitops

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway/slipway/internal/diag"
)

// top is the directory of the kustomization that is laid over a unit's own: it
// carries what the Flux object adds, and asks for the origin of every object.
const top = ".slipway-parity"

// render builds a unit.
func render(files Files, s spec) ([]Object, error) {
	generated, err := files.generate(s.Path)
	if err != nil {
		return nil, err
	}
	if err := files.local(s.Path); err != nil {
		return nil, err
	}
	over := types.Kustomization{
		Resources: []string{"../" + s.Path}, Patches: s.Patches, Namespace: s.Namespace,
		BuildMetadata: []string{types.OriginAnnotations},
	}
	for _, c := range s.Components {
		over.Components = append(over.Components, path.Join("..", s.Path, c))
	}
	raw, err := yaml.Marshal(over)
	if err != nil {
		return nil, err
	}
	mem := filesys.MakeFsInMemory()
	for _, set := range []Files{files, generated, {top + "/kustomization.yaml": raw}} {
		for name, data := range set {
			if err := mem.WriteFile("/"+name, data); err != nil {
				return nil, err
			}
		}
	}
	o := krusty.MakeDefaultOptions()
	o.LoadRestrictions = types.LoadRestrictionsNone // as Flux: a base may lie beside
	built, err := krusty.MakeKustomizer(o).Run(mem, "/"+top)
	if err != nil {
		return nil, fmt.Errorf("building: %w", err)
	}
	var out []Object
	for _, r := range built.Resources() {
		content, err := r.Map()
		if err != nil {
			return nil, err
		}
		from := ""
		if origin, err := r.GetOrigin(); err == nil && origin != nil {
			from = strings.TrimPrefix(path.Clean("/"+path.Join(top, origin.Path)), "/")
		}
		out = append(out, Object{Content: substitute(strip(content), s).(map[string]any), From: from})
	}
	return out, nil
}

// strip removes the annotation that was asked for.
func strip(content map[string]any) map[string]any {
	notes, _ := dig(content, "metadata", "annotations").(map[string]any)
	delete(notes, "config.kubernetes.io/origin")
	if meta, ok := content["metadata"].(map[string]any); ok && len(notes) == 0 {
		delete(meta, "annotations")
	}
	return content
}

// generate writes the kustomization of a directory that has none, as Flux does: all
// YAML files below it, and of directories with a kustomization that.
func (f Files) generate(dir string) (Files, error) {
	if _, ok := f.kustomization(dir); ok {
		return nil, nil
	}
	var k types.Kustomization
	for _, name := range f.below(dir) {
		rel := strings.TrimPrefix(name, dir+"/")
		if at, ok := f.owner(dir, name); ok {
			if owner := strings.TrimPrefix(at, dir+"/"); len(k.Resources) == 0 || k.Resources[len(k.Resources)-1] != owner {
				k.Resources = append(k.Resources, owner)
			}
			continue
		}
		if isYAML(name) {
			k.Resources = append(k.Resources, rel)
		}
	}
	raw, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	return Files{path.Join(dir, "kustomization.yaml"): raw}, nil
}

// owner is the highest directory between dir and the file that has a kustomization.
func (f Files) owner(dir, name string) (string, bool) {
	at := dir
	for _, part := range strings.Split(strings.TrimPrefix(path.Dir(name), dir), "/") {
		at = path.Join(at, part)
		if _, ok := f.kustomization(at); ok {
			return at, true
		}
	}
	return "", false
}

// errRemote says that a kustomization takes something from elsewhere.
var errRemote = errors.New("takes a base from another host")

// local refuses kustomizations that would be fetched.
func (f Files) local(dir string) error {
	for _, name := range f.reach(dir) {
		if k, ok := f.kustomization(path.Dir(name)); !ok || k != name {
			continue
		}
		for _, r := range f.entries(name) {
			if strings.Contains(r, "://") || strings.Contains(r, "?ref=") || strings.HasPrefix(r, "git@") || strings.HasPrefix(r, "github.com/") {
				return diag.WithHint(fmt.Errorf("%s: %w: %s", name, errRemote, r), "copy it into the repository; a cluster must start when that host is down")
			}
		}
	}
	return nil
}

// entries are the resources, bases and components of a kustomization file.
func (f Files) entries(name string) []string {
	var k struct{ Resources, Bases, Components []string }
	if yaml.Unmarshal(f[name], &k) != nil {
		return nil // kustomize says what is wrong with it
	}
	return append(append(k.Resources, k.Bases...), k.Components...)
}

// named are the directories that a kustomization file names.
func (f Files) named(name string) []string {
	var out []string
	for _, r := range f.entries(name) {
		if p := clean(path.Join(path.Dir(name), r)); !isYAML(r) && !strings.Contains(r, "://") {
			out = append(out, p)
		}
	}
	return out
}
