package fstree

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func tree(t *testing.T, entries ...Entry) Tree {
	t.Helper()
	got, err := New(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func paths(t Tree) []string {
	var out []string
	for e := range t.All() {
		out = append(out, e.Path)
	}
	return out
}

func TestNewOrdersAndAddsParents(t *testing.T) {
	got := tree(t, File("usr/bin/b", 0o755, nil), File("etc/a", 0o644, []byte("x")), Symlink("bin", "usr/bin"))
	want := []string{"bin", "etc", "etc/a", "usr", "usr/bin", "usr/bin/b"}
	if !slices.Equal(paths(got), want) {
		t.Errorf("paths %q, want %q", paths(got), want)
	}
	if e, ok := got.Lookup("usr"); !ok || e.Mode != fs.ModeDir|0o755 {
		t.Errorf("implied parent is %v, %v", e.Mode, ok)
	}
	if _, ok := got.Lookup("usr/b"); ok {
		t.Error("found what is not there")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"twice":          {File("a", 0o644, nil), File("a", 0o644, nil)},
		"clean relative": {File("/etc/a", 0o644, nil)},
		"clean":          {File("etc/../a", 0o644, nil)},
		"lies below":     {File("a", 0o644, nil), File("a/b", 0o644, nil)},
		"neither":        {{Path: "d", Mode: fs.ModeDir, Content: []byte("x")}},
		"has a target":   {Symlink("l", "")},
		"no link target": {{Path: "f", Target: "x"}},
		"not a file":     {{Path: "dev/null", Mode: fs.ModeDevice}},
	} {
		if _, err := New(entries...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMerge(t *testing.T) {
	base := tree(t, File("etc/a", 0o644, []byte("old")), File("etc/b", 0o644, nil))
	got, err := base.Merge(tree(t, File("etc/a", 0o600, []byte("new")), File("opt/c", 0o644, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := got.Lookup("etc/a"); string(e.Content) != "new" || e.Mode != 0o600 {
		t.Errorf("the upper entry did not win: %v %q", e.Mode, e.Content)
	}
	if got.Len() != 5 {
		t.Errorf("%d entries: %q", got.Len(), paths(got))
	}
	if _, err := base.Merge(tree(t, File("etc", 0o644, nil))); err == nil {
		t.Error("a file replaced a directory")
	}
}

func TestDigestSeesEverything(t *testing.T) {
	base := tree(t, File("a", 0o644, []byte("x")), Symlink("l", "a"))
	same := tree(t, Symlink("l", "a"), File("a", 0o644, []byte("x")))
	if base.Digest() != same.Digest() {
		t.Error("the order of arguments changed the digest")
	}
	for name, other := range map[string]Tree{
		"content": tree(t, File("a", 0o644, []byte("y")), Symlink("l", "a")),
		"mode":    tree(t, File("a", 0o755, []byte("x")), Symlink("l", "a")),
		"path":    tree(t, File("b", 0o644, []byte("x")), Symlink("l", "a")),
		"target":  tree(t, File("a", 0o644, []byte("x")), Symlink("l", "b")),
		"entry":   tree(t, File("a", 0o644, []byte("x"))),
	} {
		if other.Digest() == base.Digest() {
			t.Errorf("%s is not in the digest", name)
		}
	}
	if tree(t, File("ab", 0, []byte("c"))).Digest() == tree(t, File("a", 0, []byte("bc"))).Digest() {
		t.Error("fields run into one another")
	}
}

func TestFromFS(t *testing.T) {
	got, err := FromFS(fstest.MapFS{
		"etc/motd":    {Data: []byte("hi"), Mode: 0o600},
		"usr/bin/run": {Data: []byte("#!/bin/sh\n"), Mode: 0o444},
		"usr/bin/elf": {Data: []byte("\x7fELF"), Mode: 0o500},
		"lib":         {Data: []byte("usr/lib"), Mode: fs.ModeSymlink | 0o777},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{
		"etc": fs.ModeDir | 0o755, "etc/motd": 0o644, "usr/bin/run": 0o755, "usr/bin/elf": 0o755, "lib": fs.ModeSymlink | 0o777,
	} {
		if e, ok := got.Lookup(name); !ok || e.Mode != mode {
			t.Errorf("%s has mode %v, want %v", name, e.Mode, mode)
		}
	}
	if _, err := FromFS(fstest.MapFS{"pipe": {Mode: fs.ModeNamedPipe}}); err == nil {
		t.Error("a pipe was taken for a file")
	}
}
