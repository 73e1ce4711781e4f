package profile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/form"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// decoder fills values from a tree by reflection over the tags of their types.
type decoder struct {
	rep     *reporter
	forms   form.Table
	origins *origins
	places  map[string][]string // of every key of the format
}

// root decodes a whole profile. In a partial one, a base, keys may be missing
// at the top and in groups; the items of a list are complete everywhere.
func (d *decoder) root(n *yamltree.Node, c *cluster.Cluster, partial bool) {
	d.origins.add(origin{pos: n.Pos})
	d.group(n, reflect.ValueOf(c).Elem(), "", partial)
}

// value decodes one node into v.
func (d *decoder) value(n *yamltree.Node, v reflect.Value, f field, path string, partial bool) {
	switch t := v.Type(); {
	case n.Kind == yamltree.Broken:
	case isText(t) || t.Kind() == reflect.Bool || t.Kind() == reflect.Int:
		d.scalar(n, v, f, path)
	case t.Kind() == reflect.Struct:
		if d.want(n, yamltree.Map, path, "write its keys below it, indented") {
			d.origins.add(origin{path: path, pos: n.Pos})
			d.group(n, v, path, partial)
		}
	case t.Kind() == reflect.Slice:
		if d.want(n, yamltree.List, path, "write one item a line, each with a dash and a space") {
			d.items(n, v, f, path)
		}
	case t.Kind() == reflect.Map:
		if d.want(n, yamltree.Map, path, "write its keys below it, indented") {
			d.entries(n, v, f, path)
		}
	default:
		panic("profile: no decoder for " + t.String()) // a type that the format does not have; every field is covered by a test
	}
}

// want reports a node of the wrong kind.
func (d *decoder) want(n *yamltree.Node, kind yamltree.Kind, path, hint string) bool {
	if n.Kind == kind {
		return true
	}
	d.rep.at(n.Pos, path, fmt.Sprintf("%s where %s belongs", n.Kind, kind), hint)
	return false
}

// group decodes a mapping with known keys into a struct.
func (d *decoder) group(n *yamltree.Node, v reflect.Value, path string, partial bool) {
	fields := fieldsOf(v.Type())
	meant := map[string]bool{}
	for _, e := range n.Entries {
		if _, ok := find(fields, e.Key); !ok {
			meant[d.unknownKey(e, fields, path)] = true
		}
	}
	for _, f := range fields {
		at := yamltree.Key(path, f.Key)
		if e := n.Get(f.Key); e != nil {
			d.value(e.Value, v.Field(f.Index), f, at, partial)
			continue
		}
		if f.Need && !partial {
			// A misspelt key is one mistake, not two.
			if meant[f.Key] || n.Partial {
				d.rep.spoiled = append(d.rep.spoiled, at)
			} else {
				d.rep.at(n.Pos, at, "the key "+f.Key+" is missing", f.Key+": "+f.Doc)
			}
			continue
		}
		d.absent(v.Field(f.Index), f, at)
	}
}

// absent gives a key that was not written its default, and what is inside it theirs.
func (d *decoder) absent(v reflect.Value, f field, path string) {
	switch {
	case f.Default != "":
		d.value(&yamltree.Node{Kind: yamltree.Scalar, Text: f.Default, Plain: true}, v, f, path, true)
	case isGroup(f.Type) && !f.Need:
		d.group(&yamltree.Node{Kind: yamltree.Map}, v, path, true)
	}
}

// items decodes a list. Lists of texts are sets: the second of two equal items
// is a mistake.
func (d *decoder) items(n *yamltree.Node, v reflect.Value, f field, path string) {
	if f.Need && len(n.Items) == 0 {
		d.rep.at(n.Pos, path, "an empty list", "at least one is needed; "+f.Key+": "+f.Doc)
	}
	d.origins.add(origin{path: path, pos: n.Pos})
	list := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	first := map[string]diag.Pos{}
	for i, item := range n.Items {
		d.value(item, list.Index(i), f.item(), fmt.Sprintf("%s[%d]", path, i), false)
		if item.Kind != yamltree.Scalar {
			continue
		}
		if pos, again := first[item.Text]; again {
			d.rep.at(item.Pos, fmt.Sprintf("%s[%d]", path, i), form.Quote(item.Text)+" is in the list twice", fmt.Sprintf("the first is at line %d; remove one", pos.Line))
			continue
		}
		first[item.Text] = item.Pos
	}
	v.Set(list)
}

// entries decodes a mapping whose keys are the author's.
func (d *decoder) entries(n *yamltree.Node, v reflect.Value, f field, path string) {
	d.origins.add(origin{path: path, pos: n.Pos})
	out := reflect.MakeMap(v.Type())
	for _, e := range n.Entries {
		at := yamltree.Key(path, e.Key)
		if p := d.forms[f.KeyForm].Test(e.Key); p != nil {
			d.rep.at(e.Pos, at, p.Message, p.Hint)
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, item, f.item(), at, false)
		out.SetMapIndex(reflect.ValueOf(e.Key), item)
	}
	v.Set(out)
}

// unknownKey lists what was expected, the nearest name first, and says where the
// key does exist. It returns the key that was probably meant, or "".
func (d *decoder) unknownKey(e yamltree.Entry, fields []field, path string) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Key)
	}
	hint := "expected: " + strings.Join(names, ", ")
	if path == "" {
		hint += ", " + keyVersion + ", " + keyExtends
	}
	places := d.places[e.Key]
	near := nearest(e.Key, names)
	if near != "" {
		hint = "did you mean " + near + "? " + hint
	} else if len(places) > 0 {
		hint = "it belongs to " + strings.Join(places, " or ") + "; " + hint
	}
	d.rep.at(e.Pos, yamltree.Key(path, e.Key), "unknown key "+form.Quote(e.Key), hint)
	return near
}

// keyPlaces maps every key of the format to the groups that have it.
func keyPlaces() map[string][]string {
	places := map[string][]string{}
	walkFields(func(path string, f field) {
		if i := strings.LastIndex(path, "."); i >= 0 {
			places[f.Key] = append(places[f.Key], path[:i])
		} else {
			places[f.Key] = append(places[f.Key], "the top of the profile")
		}
	})
	for _, key := range slices.Collect(maps.Keys(places)) {
		if len(places[key]) > 3 {
			delete(places, key) // name, version: too many to help
		}
	}
	return places
}
