package profile

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/profile/form"
)

//go:embed reference.md
var referenceHead string

// Reference returns the reference of the format as Markdown, made from the
// types and an introduction.
func Reference() []byte {
	r := reference{forms: form.All()}
	r.b.WriteString(referenceHead)
	r.b.WriteString("\n## The file itself\n\n" + tableHead)
	r.row(keyVersion, "`1`", "yes", "", "both", docVersion)
	r.row(keyExtends, "a file name", "in an overlay", "", "overlay", docExtends)
	r.section("The top of a profile", fieldsOf(reflect.TypeFor[cluster.Cluster]()), "", false)
	return r.b.Bytes()
}

// reference collects the Markdown.
type reference struct {
	forms form.Table
	b     bytes.Buffer
}

const tableHead = "| key | value | needed | default | set in | meaning |\n|---|---|---|---|---|---|\n"

// row writes one key; a pipe would end a cell of the table.
func (r *reference) row(key, value, need, def, place, doc string) {
	if def != "" {
		def = "`" + def + "`"
	}
	cells := []string{"`" + key + "`", value, need, def, place, doc}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", "\\|")
	}
	fmt.Fprintf(&r.b, "| %s |\n", strings.Join(cells, " | "))
}

// section writes the table of a group and then the groups inside it.
func (r *reference) section(title string, fields []field, path string, env bool) {
	fmt.Fprintf(&r.b, "\n## %s\n\n%s", title, tableHead)
	for _, f := range fields {
		r.row(f.Key, r.kind(f), map[bool]string{true: "yes"}[f.Need], f.Default, place(f, env), f.Doc)
	}
	for _, f := range fields {
		inner := f.fields()
		if inner == nil {
			continue
		}
		at := f.Key
		if path != "" {
			at = path + "." + f.Key
		}
		if f.Type.Kind() == reflect.Slice {
			at += "[]"
		}
		r.section("`"+at+"`", inner, at, env || f.Env)
	}
}

// place says which file may set a key.
func place(f field, env bool) string {
	switch {
	case env || f.Env:
		return "base, overlay"
	case f.hasEnv():
		return "see below"
	}
	return "base"
}

// kind describes the values of a key.
func (r *reference) kind(f field) string {
	switch t := f.Type; {
	case valuesOf(t) != nil:
		return "`" + strings.Join(valuesOf(t), "`, `") + "`"
	case isText(t):
		return r.forms[f.Form].Want
	case t.Kind() == reflect.Bool:
		return "`true`, `false`"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Map:
		return "a mapping: " + r.forms[f.KeyForm].Want + " to " + r.forms[f.Form].Want
	case t.Kind() == reflect.Slice && isGroup(t.Elem()):
		return "a list"
	case t.Kind() == reflect.Slice:
		return "a list: " + r.forms[f.Form].Want
	}
	return "keys below"
}
