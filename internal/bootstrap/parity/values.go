package parity

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is one place that the values of a HelmRelease come from, in the order in
// which helm-controller lays them over each other: spec.valuesFrom, then spec.values.
type source struct {
	kind, name string   // object in which the values stand
	under      []string // path of the values in that object
	secret     bool
	values     map[string]any
}

// sources reads all values of a HelmRelease. When one cannot be read it says why, and
// ok is false: what cannot be known is not compared.
func (j *judge) sources(r release) (out []source, ok bool) {
	ok = true
	for i, entry := range list(r.Content, "spec", "valuesFrom") {
		s, err := j.from(r, entry)
		if err != nil {
			j.say(r, []string{"spec", "valuesFrom", fmt.Sprint(i)}, "keep the values of cluster networking in the repository, readable by bootstrap", "%v", err)
			ok = false
			continue
		}
		out = append(out, s)
	}
	own, _ := dig(r.Content, "spec", "values").(map[string]any)
	return append(out, source{kind: kind, name: r.name(), under: []string{"spec", "values"}, secret: r.Encrypted, values: own}), ok
}

// from reads one entry of spec.valuesFrom.
func (j *judge) from(r release, entry any) (source, error) {
	s := source{kind: text(entry, "kind"), name: text(entry, "name")}
	key := cmp.Or(text(entry, "valuesKey"), "values.yaml")
	found := j.repo.Find(s.kind, s.name)
	if len(found) == 0 {
		if dig(entry, "optional") == true {
			return s, nil
		}
		return s, fmt.Errorf("the values of HelmRelease %s come from %s %s, which is not in the repository", r.name(), s.kind, s.name)
	}
	raw, err := data(found[0], key)
	if err != nil {
		return s, fmt.Errorf("%s %s: %w", s.kind, s.name, err)
	}
	s.secret = s.kind == "Secret" || found[0].Encrypted
	s.under = []string{"data", key}
	if dig(found[0].Content, "stringData", key) != nil {
		s.under[0] = "stringData"
	}
	if path := text(entry, "targetPath"); path != "" {
		s.values = nest(strings.Split(path, "."), scalarOf(raw))
		return s, nil
	}
	if err := yaml.Unmarshal([]byte(raw), &s.values); err != nil {
		return s, fmt.Errorf("%s %s: key %s is no YAML map", s.kind, s.name, key)
	}
	return s, nil
}

// data is one key of a ConfigMap or Secret.
func data(o Object, key string) (string, error) {
	if s, ok := dig(o.Content, "stringData", key).(string); ok {
		return s, nil
	}
	s, ok := dig(o.Content, "data", key).(string)
	if !ok {
		return "", fmt.Errorf("it has no key %s", key)
	}
	if text(o.Content, "kind") != "Secret" {
		return s, nil
	}
	clear, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", errors.New("key " + key + " is not base64")
	}
	return string(clear), nil
}

// scalarOf reads a single value the way Helm's --set does: a number or a truth value
// where it looks like one.
func scalarOf(raw string) any {
	var v any
	if yaml.Unmarshal([]byte(raw), &v) != nil {
		return raw
	}
	switch v.(type) {
	case bool, int, int64, float64, nil:
		return v
	}
	return raw
}

func nest(path []string, v any) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		v = map[string]any{path[i]: v}
	}
	return map[string]any{path[0]: v}
}

// merge lays b over a; maps are merged, everything else is replaced.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for key, v := range b {
		if below, ok := v.(map[string]any); ok {
			if there, ok := out[key].(map[string]any); ok {
				out[key] = merge(there, below)
				continue
			}
		}
		out[key] = v
	}
	return out
}
