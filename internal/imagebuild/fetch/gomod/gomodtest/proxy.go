// Package gomodtest makes a module proxy out of a directory, for tests that want
// the real go command and no network.
package gomodtest

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Proxy is a directory in the layout of a module proxy, which go reads by a file URL.
type Proxy struct{ dir string }

// NewProxy makes an empty proxy, and makes go use it, with a module cache of its
// own, until the test ends.
func NewProxy(t *testing.T) *Proxy {
	t.Helper()
	p := &Proxy{dir: t.TempDir()}
	cache := t.TempDir()
	t.Setenv("GOPROXY", "file://"+p.dir)
	t.Setenv("GONOSUMDB", "example.org")
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOENV", "off")
	t.Cleanup(func() { unlock(cache) })
	return p
}

// unlock makes the directories of a module cache writable, which go keeps
// read-only, so that they can be removed.
func unlock(dir string) {
	filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(p, 0o755)
		}
		return err
	})
}

// Add publishes a version of a module whose path has no upper-case letters.
// files must hold a go.mod.
func (p *Proxy) Add(t *testing.T, module, version string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(p.dir, module, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, version)
	write(t, base+".info", fmt.Sprintf(`{"Version":%q}`, version))
	write(t, base+".mod", files["go.mod"])
	write(t, filepath.Join(dir, "list"), version+"\n")
	out, err := os.Create(base + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := zip.NewWriter(out)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f, err := w.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
