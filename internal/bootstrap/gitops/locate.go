package gitops

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// Place is where a value stands in the repository.
type Place struct {
	Pos   diag.Pos
	Value string // as written; of an encrypted file, its cipher text
}

// Locate finds where the field at a path of the object kind/name is written: in the
// object itself, in patches of it, and, when the field lies in a YAML document
// inside a string, in there. Files come in the order of their names.
func (t *Tree) Locate(kind, name string, at ...string) []Place {
	var out []Place
	for _, file := range t.files.names() {
		if !isYAML(file) || !bytes.Contains(t.files[file], []byte(last(at))) {
			continue
		}
		for _, doc := range documents(t.files[file]) {
			for _, p := range within(doc, kind, name, at) {
				out = append(out, Place{Pos: diag.Pos{File: file, Line: p.line, Col: p.col}, Value: p.value})
			}
		}
	}
	return out
}

func last(at []string) string {
	if len(at) == 0 {
		return ""
	}
	return at[len(at)-1]
}

// documents parses as many YAML documents as there are.
func documents(data []byte) []*yaml.Node {
	var out []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if dec.Decode(&n) != nil {
			return out
		}
		if len(n.Content) == 1 {
			out = append(out, n.Content[0])
		}
	}
}

type spot struct {
	line, col int
	value     string
}

// within looks at a document: an object, or a kustomization with patches.
func within(doc *yaml.Node, kind, name string, at []string) []spot {
	switch scalar(doc, "kind") {
	case kind:
		if n := scalar(child(doc, "metadata"), "name"); n != name && n != "" {
			return nil
		}
		return descend(doc, at)
	case "", "Kustomization":
		return patched(doc, kind, name, at)
	}
	return nil
}

// patched looks into the inline patches of a kustomization, and into a file that is
// a list of JSON patch operations (RFC 6902).
func patched(doc *yaml.Node, kind, name string, at []string) []spot {
	if doc.Kind == yaml.SequenceNode {
		return operations(doc, at)
	}
	lists := []*yaml.Node{child(doc, "patches"), child(child(doc, "spec"), "patches")}
	var out []spot
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, entry := range list.Content {
			patch := child(entry, "patch")
			if patch == nil || !meant(entry, kind, name) {
				continue
			}
			for _, inner := range documents([]byte(patch.Value)) {
				for _, s := range within(inner, kind, name, at) {
					out = append(out, shift(s, patch))
				}
			}
		}
	}
	return out
}

// meant says whether a patch with a target is for kind/name.
func meant(entry *yaml.Node, kind, name string) bool {
	target := child(entry, "target")
	k, n := scalar(target, "kind"), scalar(target, "name")
	return (k == "" || k == kind) && (n == "" || n == name)
}

func operations(list *yaml.Node, at []string) []spot {
	pointer := "/" + strings.Join(at, "/")
	var out []spot
	for _, op := range list.Content {
		where := strings.NewReplacer("~1", "/", "~0", "~").Replace(scalar(op, "path"))
		value := child(op, "value")
		if value == nil || !strings.HasPrefix(pointer+"/", where+"/") {
			continue
		}
		rest := strings.Split(strings.Trim(strings.TrimPrefix(pointer, where), "/"), "/")
		out = append(out, descend(value, slices.DeleteFunc(rest, func(s string) bool { return s == "" }))...)
	}
	return out
}

// descend walks down a node; where the way leads into a string, it is read as YAML.
func descend(n *yaml.Node, at []string) []spot {
	if n == nil {
		return nil
	}
	if len(at) == 0 {
		return []spot{{n.Line, n.Column, n.Value}}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return descend(child(n, at[0]), at[1:])
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(at[0]); err == nil && i < len(n.Content) && i >= 0 {
			return descend(n.Content[i], at[1:])
		}
	case yaml.ScalarNode:
		var out []spot
		for _, inner := range documents([]byte(n.Value)) {
			for _, s := range descend(inner, at) {
				out = append(out, shift(s, n))
			}
		}
		return out
	}
	return nil
}

// shift turns a place inside a block scalar into one of the file: the block begins
// on the line after its indicator. Its indentation is two more than its key's.
func shift(s spot, block *yaml.Node) spot {
	if block.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		s.line += block.Line
		return s
	}
	s.line += block.Line - 1
	return s
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func scalar(n *yaml.Node, key string) string {
	if c := child(n, key); c != nil {
		return c.Value
	}
	return ""
}
