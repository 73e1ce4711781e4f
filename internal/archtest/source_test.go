package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/slipway/slipway"

// source is one Go file.
type source struct {
	path  string // relative to the module
	test  bool   // _test.go
	lines int
	file  *ast.File
	fset  *token.FileSet
}

// pkg is a directory with Go files.
type pkg struct {
	dir     string // relative to the module, "." for its root
	sources []source
}

// product are the files that are compiled into programs.
func (p pkg) product() []source {
	return slices.DeleteFunc(slices.Clone(p.sources), func(s source) bool { return s.test })
}

// at says where a node is.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// imports gives the import paths of the file, those of the module relative to it
// ("internal/cluster"), and where they stand.
func (s source) imports() map[string]string {
	out := map[string]string{}
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			name = spec.Path.Value
		}
		out[name] = s.at(spec)
	}
	return out
}

// inModule turns an import path into a directory of the module.
func inModule(imported string) (string, bool) {
	dir, ok := strings.CutPrefix(imported, module+"/")
	return dir, ok
}

// load parses every Go file of the module in fsys. Directories that the go tool
// leaves out, and modules of their own, are left out here as well.
func load(fsys fs.FS) ([]pkg, error) {
	byDir := map[string][]source{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && foreign(fsys, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		s, err := parse(fsys, name)
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], s)
		return err
	})
	var out []pkg
	for dir, sources := range byDir {
		out = append(out, pkg{dir: dir, sources: sources})
	}
	slices.SortFunc(out, func(a, b pkg) int { return strings.Compare(a.dir, b.dir) })
	return out, err
}

func foreign(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func parse(fsys fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return source{}, err
	}
	s := source{path: name, test: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet()}
	s.lines = strings.Count(string(text), "\n")
	s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments)
	return s, err
}
