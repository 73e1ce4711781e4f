// Package configfile reads k3s's configuration files and turns them into flags.
//
// The rules are those of k3s's documentation ("Configuration File"): config.yaml
// comes first, then the files of the directory config.yaml.d in alphabetical order.
// A key replaces what an earlier file said; "key+" adds to it, as a list. A later
// plain key replaces what was added, too.
package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// Default is where k3s looks for its configuration when it is not told otherwise.
const Default = "/etc/rancher/k3s/config.yaml"

// Flags reads a file and its drop-ins. Every value becomes a flag "--key=value", a
// list one flag an entry, in the order in which the keys first appeared. Neither the
// file nor its directory has to be there.
func Flags(file string) ([]string, error) {
	files, err := fragments(file)
	if err != nil {
		return nil, err
	}
	var m merged
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		if err := m.add(text); err != nil {
			return nil, fmt.Errorf("reading the configuration: %s: %w", name, err)
		}
	}
	return m.flags(), nil
}

// fragments are the files that exist, in the order in which they are read.
func fragments(file string) ([]string, error) {
	var out []string
	if _, err := os.Stat(file); err == nil {
		out = append(out, file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	entries, err := os.ReadDir(file + ".d") // sorted by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if !e.IsDir() && (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) {
			out = append(out, filepath.Join(file+".d", e.Name()))
		}
	}
	return out, nil
}

// merged are the values of all fragments so far.
type merged struct {
	keys   []string
	values map[string]any
}

func (m *merged) add(text []byte) error {
	var doc yaml.MapSlice
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return err
	}
	if m.values == nil {
		m.values = map[string]any{}
	}
	for _, item := range doc {
		key, more := strings.CutSuffix(scalar(item.Key), "+")
		old, known := m.values[key]
		if !known && !slices.Contains(m.keys, key) {
			m.keys = append(m.keys, key)
		}
		if more && known {
			m.values[key] = append(list(old), list(item.Value)...)
		} else {
			m.values[key] = item.Value
		}
	}
	return nil
}

func (m *merged) flags() []string {
	var out []string
	for _, key := range m.keys {
		dashes := "--"
		if len(key) == 1 {
			dashes = "-"
		}
		values, isList := m.values[key].([]any)
		if !isList {
			values = []any{m.values[key]}
		}
		for _, v := range values {
			out = append(out, dashes+key+"="+scalar(v))
		}
	}
	return out
}

// list is a value as a list: one that is not a list has one entry, an empty one none.
func list(v any) []any {
	if l, ok := v.([]any); ok {
		return slices.Clone(l)
	}
	if s := strings.TrimSpace(scalar(v)); s != "" {
		return []any{s}
	}
	return nil
}

// scalar is a value that is no list, as a flag says it.
func scalar(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
