package profile

import (
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// reporter collects findings and shows with each the line that it is about.
type reporter struct {
	list diag.List
	docs map[string]*yamltree.Document
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
