package pin

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// decoder walks a YAML document and collects what is wrong with it.
type decoder struct {
	file  string
	lines []string
	list  diag.List
}

// field is one key of a mapping. An optional one may be missing.
type field struct {
	name     string
	optional bool
	read     func(n *yaml.Node, path string)
}

func (d *decoder) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: d.file, Line: n.Line, Col: n.Column}
}

func (d *decoder) fail(n *yaml.Node, path, hint, format string, args ...any) {
	f := diag.Finding{Pos: d.pos(n), Path: path, Hint: hint, Message: fmt.Sprintf(format, args...)}
	if n.Line > 0 && n.Line <= len(d.lines) {
		f.Source = d.lines[n.Line-1]
		if len(f.Source) > 120 && n.Column < 100 { // a package's line is long; its start says which package it is
			f.Source = f.Source[:117] + "..."
		}
	}
	d.list.Add(f)
}

// mapping reads a mapping with exactly the given keys.
func (d *decoder) mapping(n *yaml.Node, path string, fields ...field) {
	if !d.kind(n, path, yaml.MappingNode, "a mapping") {
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if first := seen[key.Value]; first != nil {
			d.fail(key, at, "", "duplicate key %q, first given at %s", key.Value, d.pos(first))
			continue
		}
		seen[key.Value] = key
		if f := find(fields, key.Value); f != nil {
			f.read(value, at)
		} else {
			d.fail(key, at, "", "unknown key %q (expected: %s)", key.Value, names(fields))
		}
	}
	for _, f := range fields {
		if !f.optional && seen[f.name] == nil {
			d.fail(n, path, "", "missing key %q", f.name)
		}
	}
}

// sequence reads a list of anything.
func (d *decoder) sequence(n *yaml.Node, path string, each func(n *yaml.Node, path string)) {
	if !d.kind(n, path, yaml.SequenceNode, "a list") {
		return
	}
	for i, item := range n.Content {
		each(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// text reads a non-empty scalar as it is written; check, when given, says what is wrong with it.
func (d *decoder) text(into *string, check func(string) error) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !d.kind(n, path, yaml.ScalarNode, "a text") {
			return
		}
		if n.Value == "" {
			d.fail(n, path, "", "empty value")
			return
		}
		if check != nil {
			if err := check(n.Value); err != nil {
				d.fail(n, path, "", "%v", err)
				return
			}
		}
		*into = n.Value
	}
}

// number reads a whole number that is not negative.
func (d *decoder) number(into *int64) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if !d.kind(n, path, yaml.ScalarNode, "a number") {
			return
		}
		v, err := strconv.ParseUint(n.Value, 10, 62)
		if err != nil {
			d.fail(n, path, "", "not a whole number: %q", n.Value)
			return
		}
		*into = int64(v)
	}
}

func (d *decoder) kind(n *yaml.Node, path string, want yaml.Kind, what string) bool {
	if n.Kind == want && n.Anchor == "" {
		return true
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.fail(n, path, "", "anchors and aliases have no place in a lock")
	} else {
		d.fail(n, path, "", "want %s here", what)
	}
	return false
}

func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func names(fields []field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
