package profile

import (
	"slices"

	"github.com/slipway/slipway/internal/profile/yamltree"
)

// mergeSources checks the head of each file and the scope of the overlay, and
// lays the overlay over the base. It returns nil when a file cannot be used.
func mergeSources(r *reporter, docs []*yamltree.Document) *yamltree.Node {
	roots := make([]*yamltree.Node, len(docs))
	for i, d := range docs {
		roots[i] = r.header(d, i > 0)
	}
	for _, root := range roots {
		if root.Kind != yamltree.Map {
			return nil
		}
	}
	switch len(roots) {
	case 1:
		return roots[0]
	case 2:
		checkScope(r, roots[1])
		return overlaid(roots[0], roots[1])
	default:
		r.list.Add(tooMany(len(roots)))
		return nil
	}
}

// overlaid merges mappings key by key; anything else of the overlay, lists
// included, takes the place of what the base has. The base's order is kept.
func overlaid(base, over *yamltree.Node) *yamltree.Node {
	if base.Kind != yamltree.Map || over.Kind != yamltree.Map {
		return over
	}
	// Findings about the whole mapping are the overlay's to mend.
	out := &yamltree.Node{Kind: yamltree.Map, Pos: over.Pos, Entries: slices.Clone(base.Entries)}
	for _, e := range over.Entries {
		if old := out.Get(e.Key); old != nil {
			*old = yamltree.Entry{Key: e.Key, Pos: e.Pos, Value: overlaid(old.Value, e.Value)}
		} else {
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}
