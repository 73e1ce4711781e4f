package material

import (
	"slices"

	"github.com/slipway/slipway/internal/bootstrap/gitops"
	"github.com/slipway/slipway/internal/bootstrap/parity"
)

// repository shows a built repository to the parity gate.
type repository struct{ tree *gitops.Tree }

func (r repository) Find(kind, name string) []parity.Object {
	var out []parity.Object
	for _, u := range r.tree.Units {
		for _, o := range u.Objects {
			if o.Kind() == kind && (name == "" || o.Name() == name) {
				out = append(out, parity.Object{Content: o.Content, From: o.From, Encrypted: slices.Contains(u.Encrypted, o.From)})
			}
		}
	}
	return out
}

func (r repository) Locate(kind, name string, at ...string) []parity.Place {
	var out []parity.Place
	for _, p := range r.tree.Locate(kind, name, at...) {
		out = append(out, parity.Place{Pos: p.Pos, Value: p.Value})
	}
	return out
}

func (r repository) Below(dir string) map[string][]byte { return r.tree.Below(dir) }
