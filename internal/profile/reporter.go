package profile

import (
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// reporter collects findings and shows with each the line that it is about.
type reporter struct {
	list diag.List
	docs map[string]*yamltree.Document
	// spoiled are paths without a value whose finding is elsewhere.
	spoiled []string
}

// read parses all sources.
func (r *reporter) read(sources []Source) []*yamltree.Document {
	r.docs = map[string]*yamltree.Document{}
	var docs []*yamltree.Document
	for _, s := range sources {
		d, findings := yamltree.Read(s.Name, s.Data)
		for _, f := range findings {
			r.list.Add(f)
		}
		r.docs[s.Name] = d
		docs = append(docs, d)
	}
	return docs
}

// at adds one finding.
func (r *reporter) at(pos diag.Pos, path, message, hint string) {
	f := diag.Finding{Pos: pos, Path: path, Message: message, Hint: hint}
	if d := r.docs[pos.File]; d != nil {
		f.Source = d.Line(pos.Line, pos.Col)
	}
	r.list.Add(f)
}

func (r *reporter) err() error { return r.list.Err() }

// paths lists the paths that have findings or lack a value because of one.
func (r *reporter) paths() []string {
	out := slices.Clone(r.spoiled)
	for _, f := range r.list.Sorted() {
		if f.Path != "" {
			out = append(out, f.Path)
		}
	}
	return out
}

// touches reports whether path is one of spoiled, inside one, or around one. A
// rule that looks at values that could not be read would only repeat, in other
// words, what was said about them.
func touches(path string, spoiled []string) bool {
	return slices.ContainsFunc(spoiled, func(s string) bool { return s == path || inside(s, path) || inside(path, s) })
}

func inside(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}
