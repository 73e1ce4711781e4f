package yamltree

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// maxDepth bounds nesting; the format itself needs six levels.
const maxDepth = 32

// Read parses data. It always returns a document; whatever could not be used is
// Broken in it and has a finding.
func Read(name string, data []byte) (*Document, []diag.Finding) {
	d := &Document{Name: name, Root: &Node{Pos: diag.Pos{File: name}}, leaks: map[int]bool{}}
	if f := checkText(name, data); f != nil {
		return d, []diag.Finding{*f}
	}
	d.lines = splitLines(string(data))
	r := reader{doc: d}
	leaks := d.scanLeaks()
	doc, extra, err := parse(data)
	switch {
	case err != nil:
		r.findings = append(r.findings, d.syntaxFinding(err))
	case extra != nil:
		r.add(r.pos(extra), "", "a second document in the file", "one file is one profile; remove the --- and what follows")
	}
	if doc != nil {
		d.Root = r.node(doc.Content[0], "", 0)
		if d.Root.Kind == Scalar || d.Root.Kind == List {
			r.add(d.Root.Pos, "", "the file holds "+d.Root.Kind.String()+" where a mapping belongs", "a profile starts with version: 1")
			d.Root.Kind = Broken
		}
	}
	for i := range r.findings {
		r.findings[i].Source = d.Line(r.findings[i].Pos.Line, r.findings[i].Pos.Col)
	}
	return d, append(leaks, r.findings...)
}

// maxNodes bounds what is looked at, so that a file full of rubbish costs its
// reader a finding and not a minute. Three nodes make about 250.
const maxNodes = 10_000

// reader turns nodes of the YAML library into our own and collects findings.
type reader struct {
	doc      *Document
	findings []diag.Finding
	nodes    int
}

func (r *reader) add(pos diag.Pos, path, message, hint string) {
	r.findings = append(r.findings, diag.Finding{Pos: pos, Path: path, Message: message, Hint: hint})
}

// pos is the place of a node. A value that is absent at the end of a file
// without a final line break stands behind its last line for the library.
func (r *reader) pos(y *yaml.Node) diag.Pos {
	p := diag.Pos{File: r.doc.Name, Line: y.Line, Col: y.Column}
	if last := len(r.doc.lines); p.Line > last {
		p.Line, p.Col = last, utf8.RuneCountInString(r.doc.lines[last-1])+1
	}
	return p
}

// node converts one value. What makes it unusable is reported here, once.
func (r *reader) node(y *yaml.Node, path string, depth int) *Node {
	n := &Node{Pos: r.pos(y)}
	r.nodes++
	switch {
	case r.nodes > maxNodes:
		if r.nodes == maxNodes+1 {
			r.add(n.Pos, "", fmt.Sprintf("more than %d values", maxNodes), "is this a profile?")
		}
	case depth > maxDepth:
		r.add(n.Pos, "", fmt.Sprintf("nested deeper than %d levels", maxDepth), "is this a profile?")
	case y.Kind == yaml.AliasNode:
		r.add(n.Pos, path, "an alias (*"+y.Value+")", "write the value out; aliases are not used in profiles")
	case y.Anchor != "":
		r.add(n.Pos, path, "an anchor (&"+y.Anchor+")", "write the value out where it is needed; anchors are not used in profiles")
	case y.Style&yaml.TaggedStyle != 0:
		r.add(n.Pos, path, "a YAML tag ("+y.Tag+")", "remove it; the format knows the type of every key")
	case y.Kind == yaml.MappingNode:
		n.Kind = Map
		r.mapping(n, y, path, depth)
	case y.Kind == yaml.SequenceNode:
		n.Kind = List
		for i, item := range y.Content {
			n.Items = append(n.Items, r.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	default:
		r.scalar(n, y, path)
	}
	return n
}

func (r *reader) mapping(n *Node, y *yaml.Node, path string, depth int) {
	first := map[string]int{} // line of each key
	for i := 0; i+1 < len(y.Content) && r.nodes <= maxNodes; i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		pos := r.pos(key)
		at := Key(path, key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || strings.Contains(key.Value, "\n"):
			r.add(pos, path, "a key that is not a word", "keys are plain words")
			n.Partial = true
			continue
		case key.Tag == "!!merge":
			r.add(pos, path, "a merge key (<<)", "write the keys out; merge keys are not used in profiles")
			n.Partial = true
			continue
		case key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			r.add(pos, path, "an anchor or a tag on a key", "remove it; a key is a plain word")
			n.Partial = true
			continue
		case leak(key.Value) != "":
			r.doc.leaks[pos.Line] = true
			continue
		case first[key.Value] > 0:
			r.add(pos, at, fmt.Sprintf("the key %s is given twice", at), fmt.Sprintf("the first is at line %d; keep one", first[key.Value]))
			continue
		}
		first[key.Value] = pos.Line
		n.Entries = append(n.Entries, Entry{Key: key.Value, Pos: pos, Value: r.node(value, at, depth+1)})
	}
}
