package labbin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// modulePath is the path in labk3s's go.mod.
const modulePath = "github.com/slipway/slipway/vm-test/labk3s"

// sourceKey is a digest of everything that decides what a program becomes: its own
// files and those of the module's packages below it, go.mod, go.sum, the Go version,
// and this package, which holds the command line.
func sourceKey(module, program string) (string, error) {
	dirs, err := closure(module, "cmd/"+program)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), kubernetes)
	names := []string{"go.mod", "go.sum", "../labbin/labbin.go"}
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(module, dir))
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), "_test.go") {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, name := range names {
		if err := addFile(h, module, name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func addFile(h io.Writer, module, name string) error {
	data, err := os.ReadFile(filepath.Join(module, name))
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%s %d\n", name, len(data))
	_, err = h.Write(data)
	return err
}

// closure is the directory of a package, and of every package of the module that it
// imports, directly or not, in a fixed order.
func closure(module, dir string) ([]string, error) {
	seen := []string{dir}
	for i := 0; i < len(seen); i++ {
		imports, err := importsOf(filepath.Join(module, seen[i]))
		if err != nil {
			return nil, err
		}
		for _, imported := range imports {
			if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok && !slices.Contains(seen, own) {
				seen = append(seen, own)
			}
		}
	}
	slices.Sort(seen)
	return seen, nil
}

func importsOf(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range f.Imports {
			if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
				out = append(out, imported)
			}
		}
	}
	return out, nil
}
