package profile

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/form"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// The keys of a profile that describe the file and not the cluster.
const (
	keyVersion = "version"
	keyExtends = "extends"
)

const (
	docVersion = "Version of the profile format, always 1."
	docExtends = "The base that this overlay belongs to, a file in the same directory. Only overlays have it."
)

// extendsPattern keeps a base beside its overlays: a profile that reaches into
// other directories cannot be reviewed by looking at one.
const extendsPattern = `^[A-Za-z0-9][A-Za-z0-9_.-]*\.ya?ml$`

// Extends returns the file name of the base that an overlay extends, or "" for
// a base. The error is a *diag.Error; findings about the rest of the file are
// left to Parse unless there is nothing else to go by.
func Extends(s Source) (string, error) {
	d, findings := yamltree.Read(s.Name, s.Data)
	if d.Root.Kind != yamltree.Map {
		var list diag.List
		for _, f := range findings {
			list.Add(f)
		}
		return "", list.Err()
	}
	rep := &reporter{docs: map[string]*yamltree.Document{s.Name: d}}
	name := rep.extends(d.Root)
	return name, rep.err()
}

// extends reads the key extends of one file.
func (r *reporter) extends(root *yamltree.Node) string {
	e := root.Get(keyExtends)
	if e == nil || e.Value.Kind == yamltree.Broken {
		return ""
	}
	if e.Value.Kind != yamltree.Scalar || !regexp.MustCompile(extendsPattern).MatchString(e.Value.Text) {
		r.at(e.Value.Pos, keyExtends, "not the name of a file in the same directory: "+form.Quote(e.Value.Text), "write extends: base.yaml")
		return ""
	}
	return e.Value.Text
}

// header checks version and extends and returns the file without them.
func (r *reporter) header(d *yamltree.Document, overlay bool) *yamltree.Node {
	root := d.Root
	if root.Kind != yamltree.Map {
		return root
	}
	switch v := root.Get(keyVersion); {
	case v == nil:
		r.at(root.Pos, keyVersion, "the key version is missing", "a profile starts with version: "+Version)
	case v.Value.Kind != yamltree.Broken && v.Value.Text != Version:
		r.at(v.Value.Pos, keyVersion, fmt.Sprintf("version %s of the profile format is not known", form.Quote(v.Value.Text)), "this program reads version: "+Version)
	}
	switch e := root.Get(keyExtends); {
	case overlay && e == nil:
		r.at(root.Pos, keyExtends, "the key extends is missing", "an overlay names its base: extends: base.yaml")
	case overlay:
		r.extends(root)
	case e != nil:
		r.at(e.Pos, keyExtends, "a base that extends another file", "there is one base and one overlay; read an overlay together with its base")
	}
	rest := *root
	rest.Entries = slices.DeleteFunc(slices.Clone(root.Entries), func(e yamltree.Entry) bool {
		return e.Key == keyVersion || e.Key == keyExtends
	})
	return &rest
}
