// Package gitops builds a GitOps repository the way Flux does, in memory: every
// Kustomization that hangs below the cluster's directory, with its patches, its
// substitutions and its encrypted files. It is the owner of kustomize.
//
// Nothing is fetched: a base on another host makes a cluster that cannot be
// bootstrapped without it, and is an error here.
package gitops

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Files is the content of a repository: path, with slashes and relative to its
// root, to bytes.
type Files map[string][]byte

// Read reads all files of a checked-out repository except git's own.
func Read(repo fs.FS) (Files, error) {
	out := Files{}
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		out[name], err = fs.ReadFile(repo, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading repository: %w", err)
	}
	return out, nil
}

// below are the names of the files under dir, sorted.
func (f Files) below(dir string) []string {
	var out []string
	for name := range f {
		if dir == "." || strings.HasPrefix(name, dir+"/") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// names are the names of all files, sorted.
func (f Files) names() []string { return f.below(".") }

// kustomization finds the kustomization file of a directory.
func (f Files) kustomization(dir string) (string, bool) {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if p := path.Join(dir, name); f[p] != nil {
			return p, true
		}
	}
	return "", false
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// clean makes a Kustomization's path relative to the repository's root.
func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
