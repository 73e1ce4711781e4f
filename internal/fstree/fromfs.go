package fstree

import (
	"bytes"
	"fmt"
	"io/fs"
)

// FromFS reads a whole file system into a tree. Modes are made uniform, because
// neither a checkout (umask) nor an embedded file system (no execute bits) keeps
// them: directories and programs get 0755, other files 0644. A program is a file
// with an execute bit, or one that starts with "#!".
func FromFS(fsys fs.FS) (Tree, error) {
	var entries []Entry
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		e, err := read(fsys, name, d)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return Tree{}, fmt.Errorf("reading file tree: %w", err)
	}
	return New(entries...)
}

func read(fsys fs.FS, name string, d fs.DirEntry) (Entry, error) {
	switch d.Type() {
	case fs.ModeDir:
		return Dir(name, 0o755), nil
	case fs.ModeSymlink:
		target, err := fs.ReadLink(fsys, name)
		return Symlink(name, target), err
	}
	info, err := d.Info()
	if err != nil {
		return Entry{}, err
	}
	content, err := fs.ReadFile(fsys, name)
	perm := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 || bytes.HasPrefix(content, []byte("#!")) {
		perm = 0o755
	}
	e := File(name, perm, content)
	e.Mode |= info.Mode().Type()
	return e, err
}
