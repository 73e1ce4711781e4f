package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// vague are package names that say where code ended up and not what it is.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "constants", "misc", "shared", "base"}

// rulePackages: every package has a name that means something, and one comment.
func rulePackages(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		if slices.Contains(vague, path.Base(p.dir)) {
			out = append(out, p.dir+": the name says nothing about the package")
		}
		files := p.product()
		documented := slices.ContainsFunc(files, func(s source) bool { return s.file.Doc != nil })
		if !documented && len(files) > 0 {
			out = append(out, p.dir+": no package comment")
		}
	}
	return out
}

// ruleNoInit: what runs before main cannot be tested or left out.
func ruleNoInit(pkgs []pkg) []string {
	return functions(pkgs, func(s source, f *ast.FuncDecl) string {
		if f.Recv == nil && f.Name.Name == "init" {
			return s.at(f) + ": init function"
		}
		return ""
	})
}

// ruleComments: a silenced linter and a deferred duty are not kept in comments.
func ruleComments(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		for _, s := range p.sources {
			if p.dir == "internal/archtest" {
				continue // names what it forbids
			}
			for _, group := range s.file.Comments {
				for _, c := range group.List {
					for _, word := range []string{"nolint", "TODO", "FIXME", "XXX"} {
						if strings.Contains(c.Text, word) {
							out = append(out, fmt.Sprintf("%s: comment with %s", s.at(c), word))
						}
					}
				}
			}
		}
	}
	return out
}

func functions(pkgs []pkg, look func(source, *ast.FuncDecl) string) []string {
	var out []string
	for _, p := range pkgs {
		for _, s := range p.sources {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					if finding := look(s, f); finding != "" {
						out = append(out, finding)
					}
				}
			}
		}
	}
	return out
}

// selectors are the uses of an imported package, by the name of its import.
func selectors(s source, name string) []*ast.SelectorExpr {
	if !slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+name+`"` }) {
		return nil
	}
	var out []*ast.SelectorExpr
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == path.Base(name) {
			out = append(out, sel)
		}
		return true
	})
	return out
}

// packageVars are the variables that a file declares at package level.
func packageVars(s source) []*ast.ValueSpec {
	var out []*ast.ValueSpec
	for _, d := range s.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					out = append(out, v)
				}
			}
		}
	}
	return out
}
