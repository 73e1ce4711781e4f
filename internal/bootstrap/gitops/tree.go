package gitops

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// Object is one object that Flux would apply.
type Object struct {
	Content map[string]any
	From    string // the file that it comes from, before patches; may be empty
}

// Kind is the object's kind.
func (o Object) Kind() string { return o.text("kind") }

// Name is the object's name.
func (o Object) Name() string { return o.text("metadata", "name") }

// Namespace is the object's namespace.
func (o Object) Namespace() string { return o.text("metadata", "namespace") }

func (o Object) text(at ...string) string {
	s, _ := dig(o.Content, at...).(string)
	return s
}

// dig walks down maps; it returns nil where the way ends.
func dig(v any, at ...string) any {
	for _, key := range at {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// Unit is what one Flux Kustomization applies.
type Unit struct {
	Name       string // of the Kustomization
	Path       string // its directory in the repository
	Objects    []Object
	Encrypted  []string // encrypted files that it applies
	Decryption bool     // whether it says how they are decrypted
	Declared   string   // the file in which it stands; empty for the first
}

// Tree is a built repository.
type Tree struct {
	Units []Unit
	files Files
}

// Objects are all objects, in the order of the units.
func (t *Tree) Objects() []Object {
	var out []Object
	for _, u := range t.Units {
		out = append(out, u.Objects...)
	}
	return out
}

// Find returns the objects of a kind and name; an empty name means any.
func (t *Tree) Find(kind, name string) []Object {
	var out []Object
	for _, o := range t.Objects() {
		if o.Kind() == kind && (name == "" || o.Name() == name) {
			out = append(out, o)
		}
	}
	return out
}

// Undecrypted are findings about Kustomizations that apply encrypted files and do not
// say how to decrypt them: Flux would apply the cipher text.
func (t *Tree) Undecrypted() []diag.Finding {
	var out []diag.Finding
	for _, u := range t.Units {
		if len(u.Encrypted) == 0 || u.Decryption {
			continue
		}
		out = append(out, diag.Finding{
			Pos:     diag.Pos{File: u.Declared},
			Message: fmt.Sprintf("kustomization %s applies %s, which is encrypted, and has no decryption", u.Name, u.Encrypted[0]),
			Hint:    "add spec.decryption: {provider: sops, secretRef: {name: sops-age}}",
		})
	}
	return out
}

// Below returns the files under a directory, by their paths in it.
func (t *Tree) Below(dir string) map[string][]byte {
	out := map[string][]byte{}
	dir = clean(dir)
	for _, name := range t.files.below(dir) {
		out[strings.TrimPrefix(name, dir+"/")] = t.files[name]
	}
	return out
}

// Options say where to start and how to read what is encrypted.
type Options struct {
	Path string // the cluster's directory in the repository
	Name string // of the Kustomization that bootstrap makes for it
	// Encrypted says whether a file is encrypted; Open decrypts it. What it returns
	// never leaves memory.
	Encrypted func([]byte) bool
	Open      func([]byte) ([]byte, error)
}

// most bounds how many Kustomizations are followed; a repository with more is
// likelier one that loops.
const most = 200

// Build builds the Kustomization at o.Path and every one that it applies.
func Build(files Files, o Options) (*Tree, error) {
	b := &builder{files: files, o: o, seen: map[string]bool{}}
	queue := []spec{{Name: cmp.Or(o.Name, "flux-system"), Path: clean(o.Path), Decryption: true}}
	for len(queue) > 0 && len(b.units) < most {
		next := queue[0]
		queue = queue[1:]
		if b.seen[next.Name] {
			continue
		}
		b.seen[next.Name] = true
		unit, err := b.unit(next)
		if err != nil {
			return nil, fmt.Errorf("kustomization %s (%s): %w", next.Name, next.Path, err)
		}
		b.units = append(b.units, unit)
		for _, obj := range unit.Objects {
			if s, ok := asSpec(obj); ok {
				queue = append(queue, s)
			}
		}
	}
	return &Tree{Units: b.units, files: files}, nil
}

type builder struct {
	files Files
	o     Options
	units []Unit
	seen  map[string]bool
}

func (b *builder) unit(s spec) (Unit, error) {
	u := Unit{Name: s.Name, Path: s.Path, Decryption: s.Decryption, Declared: s.Declared}
	if len(b.files.below(s.Path)) == 0 {
		return u, diag.WithHint(fmt.Errorf("the repository has no directory %s", s.Path), "push the directory first; bootstrap gitops-init writes one to start with")
	}
	tree, err := b.decrypted(s, &u)
	if err != nil {
		return u, err
	}
	u.Objects, err = render(tree, s)
	return u, err
}

// decrypted is the repository as kustomize sees it for one unit: its encrypted files
// opened.
func (b *builder) decrypted(s spec, u *Unit) (Files, error) {
	out := Files{}
	for name, data := range b.files {
		out[name] = data
	}
	if b.o.Encrypted == nil {
		return out, nil
	}
	for _, name := range b.files.reach(s.Path) {
		if !isYAML(name) || !b.o.Encrypted(b.files[name]) {
			continue
		}
		u.Encrypted = append(u.Encrypted, name)
		clear, err := b.o.Open(b.files[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = clear
	}
	return out, nil
}

// reach are the files that a directory can apply: its own and those of the
// directories that its kustomizations name.
func (f Files) reach(dir string) []string {
	seen := map[string]bool{}
	var out []string
	queue := []string{dir}
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if seen[d] {
			continue
		}
		seen[d] = true
		for _, name := range f.below(d) {
			if !seen["file "+name] {
				seen["file "+name] = true
				out = append(out, name)
			}
			if k, ok := f.kustomization(path.Dir(name)); ok && k == name {
				queue = append(queue, f.named(k)...)
			}
		}
	}
	return out
}
