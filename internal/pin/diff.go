package pin

import (
	"fmt"
	"slices"
	"strings"

	"pault.ag/go/debian/version"
)

// Change is one difference between two locks. From is empty for what was added,
// To for what was removed.
type Change struct {
	Set  string `json:"set"` // a package set, or "artifacts"
	Name string `json:"name"`
	From string `json:"from,omitempty"` // version
	To   string `json:"to,omitempty"`   // version
	How  How    `json:"how"`
}

// How says what kind of change it is.
type How string

// The kinds of changes.
const (
	Added   How = "added"
	Removed How = "removed"
	Raised  How = "raised"
	Lowered How = "lowered"
	Rebuilt How = "rebuilt" // the same version with other bytes: worth a look
	Moved   How = "moved"   // the same bytes at another place

	Pinned   How = "pinned"   // was unpinned
	Unpinned How = "unpinned" // was pinned
)

// String is the change as one line.
func (c Change) String() string {
	switch c.How {
	case Added:
		return fmt.Sprintf("added    %s %s", c.Name, c.To)
	case Removed:
		return fmt.Sprintf("removed  %s %s", c.Name, c.From)
	case Pinned, Unpinned, Moved:
		return fmt.Sprintf("%-8s %s %s", c.How, c.Name, c.To)
	case Rebuilt:
		return fmt.Sprintf("rebuilt  %s %s: the same version with another digest", c.Name, c.To)
	default:
		return fmt.Sprintf("%-8s %s %s -> %s", c.How, c.Name, c.From, c.To)
	}
}

// entry is what a diff compares: a package or an artifact.
type entry struct{ name, version, content, place string }

// Diff lists what changes from one lock to another; from may be nil. The order
// is that of sets, then of names.
func Diff(from, to *Lock) []Change {
	if from == nil {
		from = &Lock{}
	}
	var out []Change
	for _, name := range []string{SetKernel, SetNetboot, SetRootfs} {
		out = append(out, diffEntries(name, packageEntries(from.Set(name)), packageEntries(to.Set(name)))...)
	}
	return append(out, diffEntries("artifacts", artifactEntries(from), artifactEntries(to))...)
}

func packageEntries(s *Set) (list []entry) {
	if s == nil {
		return nil
	}
	for _, p := range s.Packages {
		list = append(list, entry{p.Name, p.Version, p.Digest.Hex(), p.Archive + "/" + p.Path})
	}
	return list
}

func artifactEntries(l *Lock) (list []entry) {
	for _, a := range l.Artifacts {
		list = append(list, entry{a.Name, a.Version, a.Digest.Hex(), a.from()})
	}
	return list
}

func diffEntries(set string, from, to []entry) (out []Change) {
	old := map[string]entry{}
	for _, e := range from {
		old[e.name] = e
	}
	for _, e := range to {
		was, there := old[e.name]
		delete(old, e.name)
		c := Change{Set: set, Name: e.name, From: was.version, To: e.version}
		switch {
		case !there:
			c.How = Added
		case was.version != e.version:
			c.How = direction(was.version, e.version)
		case was.content == "" && e.content != "":
			c.How = Pinned
		case was.content != "" && e.content == "":
			c.How = Unpinned
		case was.content != e.content:
			c.How = Rebuilt
		case was.place != e.place:
			c.How = Moved
		default:
			continue
		}
		out = append(out, c)
	}
	for _, was := range old {
		out = append(out, Change{Set: set, Name: was.name, From: was.version, How: Removed})
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// direction compares by Debian's rules (policy 5.6.12), which serve for the
// versions of artifacts too.
func direction(from, to string) How {
	a, err1 := version.Parse(strings.TrimPrefix(from, "v"))
	b, err2 := version.Parse(strings.TrimPrefix(to, "v"))
	if err1 == nil && err2 == nil && version.Compare(a, b) > 0 {
		return Lowered
	}
	return Raised
}
