// Package yamltree reads the strict subset of YAML that profiles are written
// in: mappings with plain keys, lists, and scalars whose text stays as it was
// written. It refuses what makes YAML surprising: anchors, merge keys, tags,
// several documents, block text, null. Every value knows its file, line and column.
package yamltree

import (
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// Kind is what a node of the tree is.
type Kind int

// The kinds of nodes. A Broken node has been reported already: whoever meets
// one says nothing more about it.
const (
	Broken Kind = iota
	Scalar
	List
	Map
)

// String names the kind for people who write YAML.
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "a single value"
	case List:
		return "a list"
	case Map:
		return "a mapping"
	default:
		return "nothing usable"
	}
}

// Node is one value of a document.
type Node struct {
	Kind    Kind
	Pos     diag.Pos
	Text    string // of a Scalar, as written
	Plain   bool   // a Scalar without quotes
	Entries []Entry
	Items   []*Node
	Partial bool // a Map with keys that could not be used and were reported
}

// Entry is a key of a mapping and its value.
type Entry struct {
	Key   string
	Pos   diag.Pos // of the key
	Value *Node
}

// Get returns the entry with the given key of a mapping, or nil.
func (n *Node) Get(key string) *Entry {
	for i := range n.Entries {
		if n.Entries[i].Key == key {
			return &n.Entries[i]
		}
	}
	return nil
}

// Document is one file as a tree. Root is a Map or Broken.
type Document struct {
	Name  string
	Root  *Node
	lines []string
	leaks map[int]bool // lines that must not be shown
}

// Key appends a key to a dotted path; keys with dots in them are bracketed.
func Key(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]\" "):
		return path + "[\"" + key + "\"]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}
