package pin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// Parse reads a lock strictly: unknown and duplicate keys, missing digests and
// paths that leave the archive are findings with their place in file. All
// findings come back together, as a diag.Error.
func Parse(file string, data []byte) (*Lock, error) {
	d := &decoder{file: file, lines: strings.Split(string(data), "\n")}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		d.list.Add(syntaxError(file, err))
		return nil, d.list.Err()
	}
	if len(doc.Content) == 0 {
		d.list.Add(diag.Finding{Pos: diag.Pos{File: file}, Message: "empty lock", Hint: "run imagebuild pin"})
		return nil, d.list.Err()
	}
	l := &Lock{}
	d.lock(doc.Content[0], l)
	if err := d.list.Err(); err != nil {
		return nil, err
	}
	return l, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxError(file string, err error) diag.Finding {
	pos := diag.Pos{File: file}
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		pos.Line, _ = strconv.Atoi(m[1]) // no line is line 0: the whole file
		msg = msg[len(m[0]):]
	}
	return diag.Finding{Pos: pos, Message: "not YAML: " + msg}
}

func (d *decoder) lock(n *yaml.Node, l *Lock) {
	if !d.version(n) {
		return // a lock of another format would only give misleading findings
	}
	d.mapping(n, "",
		field{name: "version", read: func(*yaml.Node, string) {}},
		field{name: "debian", read: func(n *yaml.Node, p string) { d.debian(n, p, &l.Debian) }},
		field{name: "artifacts", read: func(n *yaml.Node, p string) {
			d.sequence(n, p, func(n *yaml.Node, p string) {
				a := d.artifact(n, p)
				if l.Artifact(a.Name) != nil {
					d.fail(n, p, "", "artifact %s is listed twice", a.Name)
				}
				l.Artifacts = append(l.Artifacts, a)
			})
		}})
}

func (d *decoder) version(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return true // mapping will say it
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := n.Content[i+1]
		if n.Content[i].Value == "version" && v.Value != strconv.Itoa(FormatVersion) {
			d.fail(v, "version", "write it anew with imagebuild pin", "this program reads locks of version %d, not %s", FormatVersion, v.Value)
			return false
		}
	}
	return true
}

func (d *decoder) debian(n *yaml.Node, path string, deb *Debian) {
	d.mapping(n, path,
		field{name: "suite", read: d.text(&deb.Suite, checkWord)},
		field{name: "arch", read: d.text(&deb.Arch, checkWord)},
		field{name: "components", read: d.texts(&deb.Components, checkWord)},
		field{name: "releases", read: func(n *yaml.Node, p string) {
			d.sequence(n, p, func(n *yaml.Node, p string) { deb.Releases = append(deb.Releases, d.release(n, p)) })
		}},
		field{name: "sets", read: func(n *yaml.Node, p string) { deb.Sets = d.sets(n, p) }})
}

func (d *decoder) texts(into *[]string, check func(string) error) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		d.sequence(n, path, func(n *yaml.Node, p string) {
			var s string
			d.text(&s, check)(n, p)
			*into = append(*into, s)
		})
	}
}

func (d *decoder) release(n *yaml.Node, path string) (r Release) {
	d.mapping(n, path,
		field{name: "archive", read: d.text(&r.Archive, checkArchive)},
		field{name: "suite", read: d.text(&r.Suite, checkWord)},
		field{name: "date", read: d.text(new(string), parseDate(&r.Date))},
		field{name: "sha256", read: d.text(new(string), parseDigest(&r.Digest))})
	return r
}

func (d *decoder) sets(n *yaml.Node, path string) (sets []Set) {
	var fields []field
	for _, name := range []string{SetKernel, SetNetboot, SetRootfs} {
		fields = append(fields, field{name: name, optional: true, read: func(n *yaml.Node, p string) {
			s := Set{Name: name}
			d.set(n, p, &s)
			sets = append(sets, s)
		}})
	}
	d.mapping(n, path, fields...)
	return sets
}

func (d *decoder) set(n *yaml.Node, path string, s *Set) {
	first := map[string]*yaml.Node{}
	d.mapping(n, path,
		field{name: "wanted", read: d.texts(&s.Wanted, checkPackageName)},
		field{name: "packages", read: func(n *yaml.Node, p string) {
			d.sequence(n, p, func(n *yaml.Node, p string) {
				pkg := d.pkg(n, p)
				if f := first[pkg.Name]; f != nil && pkg.Name != "" {
					d.fail(n, p, "", "package %s is listed twice, first at %s", pkg.Name, d.pos(f))
				}
				first[pkg.Name] = n
				s.Packages = append(s.Packages, pkg)
			})
		}})
}

func (d *decoder) pkg(n *yaml.Node, path string) (p Package) {
	d.mapping(n, path,
		field{name: "name", read: d.text(&p.Name, checkPackageName)},
		field{name: "version", read: d.text(&p.Version, checkVersion)},
		field{name: "arch", read: d.text(&p.Arch, checkWord)},
		field{name: "archive", read: d.text(&p.Archive, checkArchive)},
		field{name: "size", read: d.number(&p.Size)},
		field{name: "sha256", read: d.text(new(string), parseDigest(&p.Digest))},
		field{name: "path", read: d.text(&p.Path, checkPath)})
	return p
}

func (d *decoder) artifact(n *yaml.Node, path string) (a Artifact) {
	kind := ""
	d.mapping(n, path,
		field{name: "name", read: d.text(&a.Name, checkArtifact)},
		field{name: "version", read: d.text(&a.Version, nil)},
		field{name: "for", optional: true, read: d.text(&a.For, checkArtifact)},
		field{name: "kind", read: d.text(&kind, checkKind)},
		field{name: "source", read: d.text(&a.Source, nil)},
		field{name: "subdir", optional: true, read: d.text(&a.Subdir, checkPath)},
		field{name: "h1", optional: true, read: d.text(&a.H1, checkH1)},
		field{name: "size", optional: true, read: d.number(&a.Size)},
		field{name: "sha256", optional: true, read: d.text(new(string), parseDigest(&a.Digest))},
		field{name: "unpinned", optional: true, read: d.text(&a.Unpinned, nil)})
	a.Kind = Kind(kind)
	if err := a.check(); err != nil && d.list.Len() == 0 {
		d.fail(n, path, "", "%v", err)
	}
	return a
}

// check tells what does not fit together in an artifact.
func (a *Artifact) check() error {
	switch {
	case a.Unpinned == "" && a.Digest.IsZero():
		return fmt.Errorf("artifact %s has neither sha256 nor unpinned", a.Name)
	case a.Unpinned != "" && !a.Digest.IsZero():
		return fmt.Errorf("artifact %s has both sha256 and unpinned", a.Name)
	case a.Kind == KindGoModule && a.Unpinned == "" && a.H1 == "":
		return fmt.Errorf("artifact %s comes from a Go module and has no h1", a.Name)
	case a.Kind == KindURL && !strings.HasPrefix(a.Source, "https://") && !strings.HasPrefix(a.Source, "http://"):
		return fmt.Errorf("artifact %s: not an http or https URL: %q", a.Name, a.Source)
	}
	return nil
}
