package chart

import (
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/slipway/slipway/internal/bootstrap/kube"
)

// Render gives the objects of a release as Helm would install them, hooks and
// definitions among them, in the order of installing. It asks nobody: a template
// that looks something up in the cluster finds nothing.
func Render(r Release, caps Caps) ([]map[string]any, error) {
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	given, err := values(r.Values)
	if err != nil {
		return nil, fmt.Errorf("values of release %s: %w", r, err)
	}
	texts, err := render(c, r, given, caps)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s, release %s: %w", c.Name(), c.Metadata.Version, r, err)
	}
	var out []map[string]any
	for _, t := range texts {
		objects, err := kube.Decode(t.name, []byte(t.content))
		if err != nil {
			return nil, fmt.Errorf("chart %s %s, release %s: %w", c.Name(), c.Metadata.Version, r, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

type text struct{ name, content string }

func render(c *chart.Chart, r Release, given map[string]any, caps Caps) ([]text, error) {
	known, err := caps.helm()
	if err != nil {
		return nil, err
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, known.KubeVersion.String()) {
		return nil, fmt.Errorf("it wants Kubernetes %s, not %s", wanted, known.KubeVersion.String())
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, given); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, options, known)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(path.Base(name), ".txt") {
			delete(files, name) // notes for people
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var out []text
	for _, d := range c.CRDObjects() {
		out = append(out, text{d.Filename, string(d.File.Data)})
	}
	for _, m := range manifests {
		out = append(out, text{m.Name, m.Content})
	}
	for _, h := range hooks {
		out = append(out, text{h.Path, h.Manifest})
	}
	return out, nil
}
