package profile

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// Value is one value of the merged profile. Pos is where it was written; a
// default has none.
type Value struct {
	Path    string   `json:"path"`
	Value   string   `json:"value"`
	Pos     diag.Pos `json:"pos,omitzero"`
	Default bool     `json:"default,omitempty"`
}

// Values lists all values of the merged profile in the order of the format.
func (p *Profile) Values() []Value {
	var out []Value
	for _, o := range p.origins.list {
		if o.leaf {
			out = append(out, Value{Path: o.path, Value: o.text, Pos: o.pos, Default: o.pos.File == ""})
		}
	}
	return out
}

// Show writes the merged profile with the origin of each value: as YAML with
// comments, or as a JSON list of Value.
func (p *Profile) Show(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(p.Values())
	}
	s := shower{origins: p.origins}
	s.group(reflect.ValueOf(p.Cluster), "", 0)
	return s.write(w)
}

// shower renders values as YAML, a line each.
type shower struct {
	origins *origins
	lines   []shownLine
}

// shownLine is a line of YAML and, for a value, where it comes from.
type shownLine struct{ text, from string }

func (s *shower) line(indent int, text, from string) {
	s.lines = append(s.lines, shownLine{strings.Repeat("  ", indent) + text, from})
}

// group shows the keys of a struct that have a value.
func (s *shower) group(v reflect.Value, path string, indent int) {
	for _, f := range fieldsOf(v.Type()) {
		at, inner := yamltree.Key(path, f.Key), v.Field(f.Index)
		switch o, given := s.origins.byPath[at]; {
		case given && o.leaf:
			s.leaf(f.Key+": ", inner, o, indent)
		case isGroup(f.Type):
			s.head(f.Key, indent, func() { s.group(inner, at, indent+1) })
		case given && inner.Len() == 0:
			s.line(indent, f.Key+": "+map[bool]string{true: "[]", false: "{}"}[inner.Kind() == reflect.Slice], from(o))
		case given && inner.Kind() == reflect.Slice:
			s.head(f.Key, indent, func() { s.list(inner, at, indent+1) })
		case given:
			s.head(f.Key, indent, func() { s.mapping(inner, at, indent+1) })
		}
	}
}

// head shows a key above what body shows, and nothing if that is nothing.
func (s *shower) head(key string, indent int, body func()) {
	s.line(indent, key+":", "")
	before := len(s.lines)
	body()
	if len(s.lines) == before {
		s.lines = s.lines[:before-1]
	}
}

func (s *shower) list(v reflect.Value, path string, indent int) {
	for i := range v.Len() {
		at := fmt.Sprintf("%s[%d]", path, i)
		if o := s.origins.byPath[at]; o.leaf {
			s.leaf("- ", v.Index(i), o, indent)
			continue
		}
		first := len(s.lines)
		s.group(v.Index(i), at, indent+1)
		if first < len(s.lines) {
			mark := strings.Repeat("  ", indent)
			s.lines[first].text = mark + "- " + strings.TrimPrefix(s.lines[first].text, mark+"  ")
		}
	}
}

func (s *shower) mapping(v reflect.Value, path string, indent int) {
	for _, key := range slices.Sorted(maps.Keys(v.Interface().(map[string]string))) {
		o := s.origins.byPath[yamltree.Key(path, key)]
		s.leaf(yamltree.Quote(key)+": ", v.MapIndex(reflect.ValueOf(key)), o, indent)
	}
}

func (s *shower) leaf(before string, v reflect.Value, o origin, indent int) {
	text := o.text
	if isText(v.Type()) {
		text = yamltree.Quote(text)
	}
	s.line(indent, before+text, from(o))
}

func from(o origin) string {
	if o.pos.File == "" {
		return "default"
	}
	return fmt.Sprintf("%s:%d", o.pos.File, o.pos.Line)
}

// widest bounds the column of the origins; a long line has its own further out.
const widest = 56

func (s *shower) write(w io.Writer) error {
	width := 0
	for _, l := range s.lines {
		if n := len(l.text); n <= widest {
			width = max(width, n)
		}
	}
	for _, l := range s.lines {
		text := l.text
		if l.from != "" {
			text = fmt.Sprintf("%-*s  # %s", width, l.text, l.from)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
