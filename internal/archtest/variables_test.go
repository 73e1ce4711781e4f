package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// ruleVariables: a package-level variable of the product is one of
//   - an embedded file, with go:embed above it;
//   - a sentinel error, errors.New or fmt.Errorf;
//   - a compiled expression, regexp.MustCompile;
//   - an assertion, var _ I = ...;
//   - a table: a composite literal that nothing in the package writes to.
func ruleVariables(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		names := map[string]bool{}
		for _, s := range p.product() {
			for _, v := range packageVars(s) {
				for i, name := range v.Names {
					if name.Name == "_" {
						continue
					}
					names[name.Name] = true
					if !embedded(s, v) && !constant(v, i) {
						out = append(out, fmt.Sprintf("%s: variable %s is not an embedded file, error, expression or table", s.at(name), name.Name))
					}
				}
			}
		}
		for _, s := range p.product() {
			out = append(out, writes(s, names)...)
		}
	}
	return out
}

// embedded reports whether a go:embed directive stands above the variable.
func embedded(s source, v *ast.ValueSpec) bool {
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			line := s.fset.Position(c.Pos()).Line
			if strings.HasPrefix(c.Text, "//go:embed ") && line == s.fset.Position(v.Pos()).Line-1 {
				return true
			}
		}
	}
	return false
}

// constant reports whether the i-th name of a declaration gets a value of the
// kinds that never change.
func constant(v *ast.ValueSpec, i int) bool {
	if i >= len(v.Values) {
		return false
	}
	switch value := v.Values[i].(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		return slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile"}, dotted(value.Fun))
	default:
		return false
	}
}

func dotted(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if id, ok := sel.X.(*ast.Ident); ok {
			return id.Name + "." + sel.Sel.Name
		}
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// writes finds what changes a package-level variable: assignments to it or into
// it, its address taken, and the functions that change their first argument.
func writes(s source, names map[string]bool) []string {
	var out []string
	top := packageVars(s)
	written := func(e ast.Expr) {
		if id := root(e); id != nil && names[id.Name] && global(id, top) {
			out = append(out, fmt.Sprintf("%s: the table %s is written to", s.at(e), id.Name))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					written(e)
				}
			}
		case *ast.IncDecStmt:
			written(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				written(n.X)
			}
		case *ast.CallExpr:
			if len(n.Args) > 0 && changes(dotted(n.Fun)) {
				written(n.Args[0])
			}
		}
		return true
	})
	return out
}

// changes reports whether a function changes its first argument in place.
func changes(fun string) bool {
	return slices.Contains([]string{"delete", "clear", "copy", "maps.Copy", "maps.DeleteFunc", "slices.Reverse", "sort.Slice", "sort.Strings"}, fun) ||
		strings.HasPrefix(fun, "slices.Sort") && !strings.HasPrefix(fun, "slices.Sorted") ||
		strings.HasPrefix(fun, "slices.Delete") || strings.HasPrefix(fun, "slices.Compact")
}

// root is the variable that an expression such as x.f[i] reaches into.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// global reports whether a name is not bound inside of a function. The parser
// binds names file by file; a package variable of another file stays unbound.
func global(id *ast.Ident, top []*ast.ValueSpec) bool {
	if id.Obj == nil {
		return true
	}
	spec, ok := id.Obj.Decl.(*ast.ValueSpec)
	return ok && slices.Contains(top, spec)
}
