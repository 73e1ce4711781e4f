package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// The sizes that the best code bases of this field keep.
const (
	maxFile      = 500  // lines of a file
	maxPackage   = 1500 // lines of a package, without tests
	ninetieth    = 45   // lines of a function at the 90th percentile
	longFunction = 60   // lines; at most 4 functions of 100 are longer
)

// ruleSizes: files, packages and functions stay as small as they are read.
func ruleSizes(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		total := 0
		for _, s := range p.sources {
			if s.lines > maxFile {
				out = append(out, fmt.Sprintf("%s: %d lines, more than %d", s.path, s.lines, maxFile))
			}
		}
		for _, s := range p.product() {
			total += s.lines
		}
		if total > maxPackage {
			out = append(out, fmt.Sprintf("%s: %d lines, more than %d", p.dir, total, maxPackage))
		}
	}
	return append(out, functionSizes(pkgs)...)
}

func functionSizes(pkgs []pkg) []string {
	var lengths []int
	var long []string
	functions(pkgs, func(s source, f *ast.FuncDecl) string {
		n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
		if !s.test {
			lengths = append(lengths, n)
		}
		if !s.test && n > longFunction {
			long = append(long, fmt.Sprintf("%s: %s has %d lines", s.at(f), f.Name.Name, n))
		}
		return ""
	})
	if len(lengths) == 0 {
		return nil
	}
	slices.Sort(lengths)
	var out []string
	if n := lengths[len(lengths)*9/10]; n > ninetieth {
		out = append(out, fmt.Sprintf("functions: the 90th percentile has %d lines, more than %d", n, ninetieth))
	}
	if len(long)*100 > 4*len(lengths) {
		out = append(out, fmt.Sprintf("functions: %d of %d are longer than %d lines", len(long), len(lengths), longFunction))
		out = append(out, long...)
	}
	return out
}
