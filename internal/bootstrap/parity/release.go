package parity

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// kind is the Flux object that stands for a Helm release.
const kind = "HelmRelease"

// release is a HelmRelease of the repository.
type release struct{ Object }

func (r release) name() string      { return text(r.Content, "metadata", "name") }
func (r release) namespace() string { return text(r.Content, "metadata", "namespace") }
func (r release) target() string {
	return cmp.Or(text(r.Content, "spec", "targetNamespace"), r.namespace())
}
func (r release) storage() string {
	return cmp.Or(text(r.Content, "spec", "storageNamespace"), r.namespace())
}

// releaseName is the name that helm-controller gives the Helm release: what is
// written, else the target namespace and the object's name, else the latter alone
// (HelmRelease API, spec.releaseName).
func (r release) releaseName() string {
	if n := text(r.Content, "spec", "releaseName"); n != "" {
		return n
	}
	if t := text(r.Content, "spec", "targetNamespace"); t != "" {
		return t + "-" + r.name()
	}
	return r.name()
}

// chartName is the chart that the object asks for, by a template or by a reference.
func (r release) chartName() string {
	return cmp.Or(text(r.Content, "spec", "chart", "spec", "chart"), text(r.Content, "spec", "chartRef", "name"))
}

// find looks for the one HelmRelease that is meant for the running release.
func (j *judge) find() (release, bool) {
	var found []release
	for _, o := range j.repo.Find(kind, "") {
		r := release{o}
		if base(r.chartName()) == j.running.Chart || r.releaseName() == j.running.Name {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		j.verdict.Findings = append(j.verdict.Findings, diag.Finding{
			Message: fmt.Sprintf("the repository has no HelmRelease for %s", j.running.Chart),
			Hint:    "bootstrap gitops-init writes one that is in parity with the profile",
		})
	default:
		for _, r := range found {
			j.say(r, []string{"metadata", "name"}, "keep the one that belongs to this cluster",
				"HelmRelease %s/%s is one of %d for %s: each would install it", r.namespace(), r.name(), len(found), j.running.Chart)
		}
	}
	return release{}, false
}

// base is the last part of a chart's path.
func base(chart string) string { return chart[strings.LastIndex(chart, "/")+1:] }

// identity compares what makes Flux find the release that is there.
func (j *judge) identity(r release) {
	for _, c := range []struct{ field, got, want string }{
		{"releaseName", r.releaseName(), j.running.Name},
		{"targetNamespace", r.target(), j.running.Namespace},
		{"storageNamespace", r.storage(), j.running.Namespace},
	} {
		if c.got != c.want {
			j.say(r, []string{"spec", c.field}, fmt.Sprintf("set spec.%s: %s in HelmRelease %s", c.field, c.want, r.name()),
				"Flux would install a second %s instead of adopting the one that runs: %s is %s here, and %s in the cluster", j.running.Chart, c.field, c.got, c.want)
		}
	}
}

// origin compares the chart that Flux would take with the pinned one.
func (j *judge) origin(r release) error {
	if text(r.Content, "spec", "chart", "spec", "sourceRef", "kind") == "GitRepository" {
		return j.inRepository(r)
	}
	j.version(r)
	return nil
}

// inRepository compares a chart that lies in the repository, file by file: its
// version says nothing about somebody's changes.
func (j *judge) inRepository(r release) error {
	at := []string{"spec", "chart", "spec", "chart"}
	dir := text(r.Content, at...)
	theirs := j.repo.Below(dir)
	ours, err := j.chart.Files()
	if err != nil {
		return err
	}
	hint := fmt.Sprintf("copy the chart of %s %s there as it is; bootstrap gitops-init does", j.running.Chart, j.running.Version)
	if len(theirs) == 0 {
		j.say(r, at, hint, "the repository has no chart at %s", dir)
		return nil
	}
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if bytes.Equal(ours[name], theirs[name]) {
			continue
		}
		j.say(r, at, hint, "the chart at %s is not the one that was installed: %s differs", dir, name)
		return nil // one is enough: it is another chart
	}
	return nil
}

// version wants exactly the version that runs: a range lets the hand-over be an
// upgrade.
func (j *judge) version(r release) {
	at := []string{"spec", "chart", "spec", "version"}
	got := text(r.Content, at...)
	if ref := text(r.Content, "spec", "chartRef", "name"); ref != "" {
		got, at = j.referenced(r, ref), []string{"spec", "chartRef", "name"}
	}
	if strings.TrimPrefix(got, "v") == j.running.Version {
		return
	}
	j.say(r, at, fmt.Sprintf("set the version to %s; raise it after the hand-over", j.running.Version),
		"the hand-over would change the version of %s: %s here, %s in the cluster", j.running.Chart, cmp.Or(got, "any"), j.running.Version)
}

// referenced is the version of the source that a chartRef names.
func (j *judge) referenced(r release, name string) string {
	if text(r.Content, "spec", "chartRef", "kind") == "HelmChart" {
		for _, o := range j.repo.Find("HelmChart", name) {
			return text(o.Content, "spec", "version")
		}
	}
	for _, o := range j.repo.Find("OCIRepository", name) {
		return cmp.Or(text(o.Content, "spec", "ref", "tag"), text(o.Content, "spec", "ref", "semver"))
	}
	return ""
}

// behaviour refuses settings with which an adoption is none.
func (j *judge) behaviour(r release) {
	if dig(r.Content, "spec", "suspend") == true {
		j.say(r, []string{"spec", "suspend"}, "remove spec.suspend", "HelmRelease %s is suspended: Flux would not adopt %s", r.name(), j.running.Chart)
	}
	if dig(r.Content, "spec", "upgrade", "force") == true {
		j.say(r, []string{"spec", "upgrade", "force"}, "remove spec.upgrade.force",
			"HelmRelease %s replaces objects instead of changing them: its first upgrade would restart %s everywhere at once", r.name(), j.running.Chart)
	}
	if len(list(r.Content, "spec", "postRenderers")) > 0 {
		j.say(r, []string{"spec", "postRenderers"}, "move what they do into values, or add them after the hand-over",
			"HelmRelease %s changes what the chart renders, so what Flux would apply is not what runs", r.name())
	}
}

func text(v any, at ...string) string {
	s, _ := dig(v, at...).(string)
	return s
}

func list(v any, at ...string) []any {
	l, _ := dig(v, at...).([]any)
	return l
}

func dig(v any, at ...string) any {
	for _, key := range at {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}
