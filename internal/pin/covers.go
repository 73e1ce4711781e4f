package pin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// ErrStale is wrapped by the error for a lock that does not fit its profile.
var ErrStale = errors.New("the lock does not fit the profile")

// Covers tells what a profile wants and the lock does not have, and what the
// lock has that is wanted no more: either would build something else than the
// profile says. profile is its path as the user named it, for the hint. An
// artifact that is listed as unpinned counts as covered; what it means is said where
// it is used. What another artifact asks for goes with that one.
func (l *Lock) Covers(w Wanted, profile string) error {
	d := drift{}
	d.compare("debian.suite", w.Suite, l.Debian.Suite)
	d.compare("debian.components", strings.Join(w.Components, " "), strings.Join(l.Debian.Components, " "))
	for _, ws := range w.Sets {
		d.set(ws, l.Set(ws.Name))
	}
	for _, wa := range w.Artifacts {
		d.artifact(wa, l.Artifact(wa.Name))
	}
	for _, a := range l.Artifacts {
		name := a.Name
		if a.For != "" {
			name = a.For
		}
		if !slices.ContainsFunc(w.Artifacts, func(wa Artifact) bool { return wa.Name == name }) {
			d.add("artifact %s is no longer wanted", a.Name)
		}
	}
	if len(d.sentences) == 0 {
		return nil
	}
	return diag.WithHint(fmt.Errorf("%w: %s", ErrStale, strings.Join(d.sentences, "; ")), "run imagebuild pin -p "+profile)
}

// drift collects what differs.
type drift struct{ sentences []string }

func (d *drift) add(format string, args ...any) {
	d.sentences = append(d.sentences, fmt.Sprintf(format, args...))
}

func (d *drift) compare(what, want, have string) {
	if want != have {
		d.add("%s is %q, locked is %q", what, want, have)
	}
}

func (d *drift) set(want WantedSet, have *Set) {
	if have == nil {
		d.add("package set %s is not locked", want.Name)
		return
	}
	for _, name := range want.Packages {
		if !slices.Contains(have.Wanted, name) {
			d.add("package %s is not locked", name)
		}
	}
	for _, name := range have.Wanted {
		if !slices.Contains(want.Packages, name) {
			d.add("package %s is no longer wanted", name)
		}
	}
}

func (d *drift) artifact(want Artifact, have *Artifact) {
	switch {
	case have == nil:
		d.add("%s %s is not locked", want.Name, want.Version)
	case have.Version != want.Version:
		d.add("%s is wanted in version %s, locked is %s", want.Name, want.Version, have.Version)
	case !have.sameSource(want):
		d.add("%s is wanted from %s, locked is %s", want.Name, want.from(), have.from())
	}
}

func (a *Artifact) from() string {
	if a.Subdir == "" {
		return a.Source
	}
	return a.Source + " " + a.Subdir
}

// SameAs reports whether o is the same version from the same source.
func (a *Artifact) SameAs(o Artifact) bool { return a.Version == o.Version && a.sameSource(o) }

func (a *Artifact) sameSource(o Artifact) bool {
	return a.Kind == o.Kind && a.Source == o.Source && a.Subdir == o.Subdir
}
