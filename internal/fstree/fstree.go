// Package fstree is a file tree as a value: what shall be in an archive or a
// file system, decided before anything is written. Everything in it belongs to
// root; owners, times and other attributes of the build host have no place here.
package fstree

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"

	"github.com/slipway/slipway/internal/digest"
)

// Entry is one file, directory or symbolic link, owned by root:root.
type Entry struct {
	Path    string      // slash-separated, relative, clean: "etc/hosts"
	Mode    fs.FileMode // type and permission bits; the type is 0, fs.ModeDir or fs.ModeSymlink
	Content []byte      // of a regular file
	Target  string      // of a symbolic link
}

// File is a regular file with the given permissions.
func File(name string, perm fs.FileMode, content []byte) Entry {
	return Entry{Path: name, Mode: perm.Perm(), Content: content}
}

// Dir is a directory with the given permissions.
func Dir(name string, perm fs.FileMode) Entry {
	return Entry{Path: name, Mode: fs.ModeDir | perm.Perm()}
}

// Symlink is a symbolic link.
func Symlink(name, target string) Entry {
	return Entry{Path: name, Mode: fs.ModeSymlink | 0o777, Target: target}
}

// Tree is a set of entries in the order of their paths, in which the parent of
// every entry is present and comes first. The zero value is the empty tree.
type Tree struct{ entries []Entry }

// New makes a tree. Missing parents become directories of mode 0755. A path
// that is given twice, is not clean, or lies below something that is not a
// directory is an error.
func New(entries ...Entry) (Tree, error) {
	seen := make(map[string]Entry, len(entries))
	for _, e := range entries {
		if err := check(e); err != nil {
			return Tree{}, err
		}
		if _, twice := seen[e.Path]; twice {
			return Tree{}, fmt.Errorf("%s is in the tree twice", e.Path)
		}
		seen[e.Path] = e
	}
	return build(seen)
}

// Merge lays over on top of t: where both have a path, the entry of over is
// taken. A directory and something else at the same path is an error.
func (t Tree) Merge(over Tree) (Tree, error) {
	seen := make(map[string]Entry, len(t.entries)+len(over.entries))
	for _, e := range t.entries {
		seen[e.Path] = e
	}
	for _, e := range over.entries {
		if old, ok := seen[e.Path]; ok && old.Mode.IsDir() != e.Mode.IsDir() {
			return Tree{}, fmt.Errorf("%s is a directory in one tree and not in the other", e.Path)
		}
		seen[e.Path] = e
	}
	return build(seen)
}

// Len is the number of entries, implied parents included.
func (t Tree) Len() int { return len(t.entries) }

// All goes through the entries, parents first.
func (t Tree) All() iter.Seq[Entry] { return slices.Values(t.entries) }

// Lookup returns the entry at a path.
func (t Tree) Lookup(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(t.entries, name, func(e Entry, n string) int { return cmp.Compare(e.Path, n) })
	if !ok {
		return Entry{}, false
	}
	return t.entries[i], true
}

// Digest covers every path, mode, content and target, each with its length in
// front, so that no two different trees run together into the same bytes.
func (t Tree) Digest() digest.Digest {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	for _, e := range t.entries {
		field([]byte(e.Path))
		field(binary.BigEndian.AppendUint32(nil, uint32(e.Mode)))
		field(e.Content)
		field([]byte(e.Target))
	}
	return digest.FromHash(h)
}

func check(e Entry) error {
	if !fs.ValidPath(e.Path) || e.Path == "." {
		return fmt.Errorf("%q is not a clean relative path", e.Path)
	}
	switch e.Mode.Type() {
	case 0:
		if e.Target != "" {
			return fmt.Errorf("%s: a file has no link target", e.Path)
		}
	case fs.ModeDir:
		if e.Target != "" || len(e.Content) != 0 {
			return fmt.Errorf("%s: a directory has neither content nor target", e.Path)
		}
	case fs.ModeSymlink:
		if e.Target == "" || len(e.Content) != 0 {
			return fmt.Errorf("%s: a link has a target and no content", e.Path)
		}
	default:
		return fmt.Errorf("%s: %s is not a file, directory or link", e.Path, e.Mode)
	}
	return nil
}

func build(seen map[string]Entry) (Tree, error) {
	all := make(map[string]Entry, len(seen))
	for name, e := range seen {
		all[name] = e
		for p := path.Dir(name); p != "."; p = path.Dir(p) {
			parent, given := seen[p]
			switch {
			case !given:
				all[p] = Dir(p, 0o755)
			case !parent.Mode.IsDir():
				return Tree{}, fmt.Errorf("%s lies below %s, which is not a directory", name, p)
			}
		}
	}
	t := Tree{entries: make([]Entry, 0, len(all))}
	for _, e := range all {
		t.entries = append(t.entries, e)
	}
	slices.SortFunc(t.entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return t, nil
}
