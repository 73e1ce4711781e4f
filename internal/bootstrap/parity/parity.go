// Package parity judges whether Flux will adopt what runs: whether the HelmRelease
// in the repository is the very release that bootstrap installed, with the values
// that it was installed with. It decides and does nothing.
//
// Flux's helm-controller finds a release by its name and its storage namespace
// (helm-controller, "Helm release naming"); with its defaults it would install a
// second Cilium beside the first. And it upgrades to the values it has: a difference
// in cluster networking cuts every node off at once.
package parity

import (
	"fmt"

	"github.com/slipway/slipway/internal/diag"
)

// Release is what runs, or what bootstrap would install.
type Release struct {
	Name, Namespace string
	Chart           string // name of the chart
	Version         string // version of the chart, without a leading v
	Values          map[string]any
}

// Chart is the pinned chart.
type Chart interface {
	// Effective are the chart's defaults with values over them.
	Effective(values map[string]any) (map[string]any, error)
	// Render renders the chart as the release in question.
	Render(values map[string]any) ([]map[string]any, error)
	// Files are the files of the chart, by their paths in it.
	Files() (map[string][]byte, error)
}

// Repository is the built repository.
type Repository interface {
	// Find returns objects of a kind; an empty name means any.
	Find(kind, name string) []Object
	// Locate finds where a field of an object is written.
	Locate(kind, name string, at ...string) []Place
	// Below returns the files under a directory, by their paths in it.
	Below(dir string) map[string][]byte
}

// Object is an object of the repository.
type Object struct {
	Content   map[string]any
	From      string // its file
	Encrypted bool   // whether that file is encrypted
}

// Place is where a value is written.
type Place struct {
	Pos   diag.Pos
	Value string
}

// Verdict is what a comparison found. It passes when there is no finding.
type Verdict struct {
	Release     string // the HelmRelease that was found, with its file
	Findings    []diag.Finding
	Differences []Difference // of values; those that change nothing too
	Objects     []string     // rendered objects that differ
}

// OK says whether the release may be handed over.
func (v Verdict) OK() bool { return len(v.Findings) == 0 }

// Err is an error with all findings, or nil.
func (v Verdict) Err() error {
	var l diag.List
	for _, f := range v.Findings {
		l.Add(f)
	}
	return l.Err()
}

// Difference is a value that is not the same on both sides.
type Difference struct {
	Path       string   `json:"path"`       // dotted, in the chart's values
	Running    string   `json:"running"`    // as JSON; "not set"
	Repository string   `json:"repository"` // as JSON; hidden when encrypted
	Pos        diag.Pos `json:"position"`   // where the repository sets it; zero when nowhere
	Networking bool     `json:"networking"` // whether cluster networking hangs on it
	Renders    bool     `json:"renders"`    // whether what is applied differs at all
}

// Judge compares the HelmRelease for running in the repository with it.
func Judge(running Release, chart Chart, repo Repository) (Verdict, error) {
	j := &judge{running: running, chart: chart, repo: repo}
	found, ok := j.find()
	if !ok {
		return j.verdict, nil
	}
	j.verdict.Release = fmt.Sprintf("%s/%s (%s)", found.namespace(), found.name(), found.From)
	j.identity(found)
	if err := j.origin(found); err != nil {
		return j.verdict, err
	}
	j.behaviour(found)
	if err := j.values(found); err != nil {
		return j.verdict, fmt.Errorf("%s: %w", found.From, err)
	}
	return j.verdict, nil
}

type judge struct {
	running Release
	chart   Chart
	repo    Repository
	verdict Verdict
}

// say adds a finding at the place where a field is written, or would be: at the
// nearest thing around it that is.
func (j *judge) say(o release, at []string, hint, format string, args ...any) {
	j.verdict.Findings = append(j.verdict.Findings, diag.Finding{Pos: j.near(o.Object, kind, o.name(), at), Message: fmt.Sprintf(format, args...), Hint: hint})
}

// near is the last place where a field is written, or else what is around it.
func (j *judge) near(o Object, kind, name string, at []string) diag.Pos {
	for n := len(at); n > 0; n-- {
		if places := j.repo.Locate(kind, name, at[:n]...); len(places) > 0 {
			return places[len(places)-1].Pos
		}
	}
	return diag.Pos{File: o.From}
}
