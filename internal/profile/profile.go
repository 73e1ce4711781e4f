// Package profile reads profiles: one base, authored once, and one overlay that
// makes an environment of it. The result is a cluster.Cluster in which every
// value knows the place it came from, or a list of findings, all of them at once.
//
// The format is described by the tags of package cluster alone: the decoder, the
// JSON Schema and the reference read them by reflection. Values are kept as they
// are written or refused, never reinterpreted: an unquoted no, 0123 or
// 52:54:00:12:34:56 stays that text where a text belongs, and yes is no truth
// value. An overlay may set what is marked scope:"env" and nothing else; its lists
// take the place of the base's lists, mappings are merged key by key.
package profile

import (
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/form"
	"github.com/slipway/slipway/internal/profile/rule"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// Version is the version of the format that profiles name.
const Version = "1"

// MaxSize bounds a profile file, in bytes.
const MaxSize = yamltree.MaxSize

// Source is one file of a profile. Name is used in findings and origins.
type Source struct {
	Name string
	Data []byte
}

// Profile is a checked profile.
type Profile struct {
	Cluster cluster.Cluster
	// Base reports that only a base was read: what an environment has to add may
	// be missing, and nothing can be built from it.
	Base    bool
	origins *origins
}

// Parse reads a base and the overlay that extends it, in this order, or a base
// alone. The error is a *diag.Error with all findings.
func Parse(sources ...Source) (*Profile, error) {
	rep := &reporter{}
	docs := rep.read(sources)
	merged := mergeSources(rep, docs)
	p := &Profile{Base: len(sources) < 2, origins: newOrigins()}
	if merged != nil {
		d := decoder{rep: rep, forms: form.All(), origins: p.origins, places: keyPlaces()}
		d.root(merged, &p.Cluster, p.Base)
		spoiled := rep.paths()
		rule.Check(&p.Cluster, p.Base, func(path, message, hint string) {
			if !touches(path, spoiled) {
				rep.at(p.origins.near(path), path, message, hint)
			}
		})
	}
	if err := rep.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// Origin returns the place that the value at a dotted path, such as
// "nodes[1].role", was read from; false for defaults and absent keys.
func (p *Profile) Origin(path string) (diag.Pos, bool) {
	o, ok := p.origins.byPath[path]
	return o.pos, ok && o.pos.File != ""
}
