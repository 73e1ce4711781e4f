package k3sconf

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// setting is the value of one key after merging.
type setting struct {
	values []string
	list   bool // written as a list; k3s repeats the flag for each item
}

// settings are the keys of a configuration in the order of their first appearance.
type settings struct {
	order []string
	by    map[string]setting
}

func (s *settings) get(key string) (setting, bool) {
	v, ok := s.by[key]
	return v, ok
}

// put applies one line of a file: the last value counts, and a key with a plus
// appends to what is there. An append makes a list of a single value.
func (s *settings) put(key string, v setting, appends bool) {
	old, there := s.by[key]
	if !there {
		s.order = append(s.order, key)
	}
	if there && appends {
		v = setting{values: slices.Concat(old.values, v.values), list: true}
	}
	s.by[key] = v
}

// line is one key of a file with its place.
type line struct {
	key     string
	appends bool
	value   setting
	pos     diag.Pos
	source  string
}

// Merge is what k3s makes of config.yaml and the drop-ins beside it, and what is
// wrong with that. dropins maps file names in DropInDir to their content.
//
// The rules are k3s's own: files that end in .yaml or .yml, in whatever case, are
// read in the order of their names; the last value of a key counts; a key that ends
// in a plus appends. So a plain key that comes after an append takes all of it away.
//
// A finding is a drop-in that undoes what Slipway decided; with any of them nothing
// may be started. Values are never repeated in a finding: they may be secrets.
func Merge(base []byte, dropins map[string][]byte) (merged []byte, findings []diag.Finding) {
	var problems diag.List
	all := settings{by: map[string]setting{}}
	for _, l := range lines(ConfigPath, base, &problems) {
		all.put(l.key, l.value, l.appends)
	}
	ours := clone(all)
	for _, name := range dropInNames(dropins) {
		for _, l := range lines(DropInDir+"/"+name, dropins[name], &problems) {
			before, _ := all.get(l.key)
			all.put(l.key, l.value, l.appends)
			after, _ := all.get(l.key)
			judge(ours, l, before, after, &problems)
		}
	}
	merged, err := yamlform.Marshal("", all.node())
	if err != nil {
		problems.Add(diag.Finding{Pos: diag.Pos{File: DropInDir}, Message: err.Error()})
	}
	return merged, problems.Sorted()
}

func clone(s settings) settings {
	out := settings{order: slices.Clone(s.order), by: map[string]setting{}}
	for k, v := range s.by {
		out.by[k] = v
	}
	return out
}

// dropInNames are the files that k3s reads, in its order: that of the bytes of
// their names.
func dropInNames(dropins map[string][]byte) []string {
	var out []string
	for name := range dropins {
		low := strings.ToLower(name)
		if strings.HasSuffix(low, ".yaml") || strings.HasSuffix(low, ".yml") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *settings) node() *yaml.Node {
	var d document
	for _, key := range s.order {
		v := s.by[key]
		switch {
		case v.list:
			d.set(key, v.values)
		default:
			d.set(key, v.values[0])
		}
	}
	return d.node()
}

// lines reads one file. What cannot be read is a finding: k3s would not start.
func lines(path string, data []byte, problems *diag.List) []line {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		problems.Add(diag.Finding{Pos: diag.Pos{File: path}, Message: "not YAML: " + reason(err), Hint: "k3s does not start with a configuration that it cannot read"})
		return nil
	}
	if len(doc.Content) == 0 {
		return nil // empty, or comments only
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		problems.Add(diag.Finding{Pos: diag.Pos{File: path, Line: top.Line, Col: top.Column}, Message: "not a mapping of keys to values", Hint: "write one k3s flag a line, such as debug: true"})
		return nil
	}
	var out []line
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		name, appends := strings.CutSuffix(key.Value, "+")
		v, ok := read(value)
		pos := diag.Pos{File: path, Line: key.Line, Col: key.Column}
		if !ok {
			problems.Add(diag.Finding{Pos: pos, Path: key.Value, Message: "a mapping where a value or a list belongs", Hint: "k3s's keys are flags: single values and lists of them"})
			continue
		}
		out = append(out, line{key: name, appends: appends, value: v, pos: pos, source: key.Value})
	}
	return out
}

// reason is the error of the YAML reader without its own name, and only its first
// line: what follows may quote the file.
func reason(err error) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if place, _, quoted := strings.Cut(text, "`"); quoted {
		return strings.TrimSpace(place) + " …"
	}
	return text
}

func read(n *yaml.Node) (setting, bool) {
	switch n.Kind {
	case yaml.AliasNode:
		return read(n.Alias)
	case yaml.ScalarNode:
		return setting{values: []string{text(n)}}, true
	case yaml.SequenceNode:
		s := setting{list: true}
		for _, item := range n.Content {
			v, ok := read(item)
			if !ok || v.list {
				return setting{}, false
			}
			s.values = append(s.values, v.values...)
		}
		return s, true
	default:
		return setting{}, false
	}
}

// text is a scalar as k3s passes it on to its flags. It reads YAML 1.1, in which
// plain yes and on are truth values, too.
func text(n *yaml.Node) string {
	if n.Tag == "!!null" {
		return ""
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value
	}
	switch strings.ToLower(n.Value) {
	case "y", "yes", "on", "true":
		return "true"
	case "n", "no", "off", "false":
		return "false"
	}
	return n.Value
}
