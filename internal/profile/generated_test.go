package profile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// TestGeneratedFiles compares what is in the repository with the generators.
func TestGeneratedFiles(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"../../profiles/schema.json": schema, "../../docs/PROFILE.md": Reference()} {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have := mustRead(t, path); have != string(want) {
			t.Errorf("%s is not what the types say; see imagebuild schema --help", path)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asEditor reads YAML as an editor does, with a reader that turns unquoted
// texts into numbers and truth values where YAML says so.
func asEditor(t *testing.T, text []byte) (any, error) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
}

// TestSchemaAdmits validates the real profiles and the good fixtures, unquoted
// numbers included.
func TestSchemaAdmits(t *testing.T) {
	schema := compileSchema(t)
	check := func(name string, text []byte) {
		v, err := asEditor(t, text)
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	paths, err := filepath.Glob("../../profiles/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatal("too few profiles", paths, err)
	}
	for _, path := range paths {
		text := mustRead(t, path)
		if !strings.HasPrefix(text, "# yaml-language-server: $schema=schema.json\n") {
			t.Errorf("%s does not name its schema", path)
		}
		check(path, []byte(text))
	}
	for _, f := range fixtures(t, "good") {
		for _, s := range f.sources(t) {
			check(f.path+":"+s.Name, s.Data)
		}
	}
}

// TestSchemaRefuses validates the bad fixtures that are about single keys and
// values: an editor marks them, too.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, name := range []string{
		"address-forms", "base-form", "disk-policy", "disk-size", "flux-scp", "header-base-environment", "header-extends", "header-no-version",
		"header-version", "k3s-keys", "key-case", "key-damaged", "key-elsewhere", "key-empty-lists", "key-missing", "key-unknown",
		"mac-forms", "name-forms", "nodes-empty", "proxy", "registries", "scope-overlay", "system-consoles", "system-debian",
		"system-modules", "system-packages", "system-sysctls", "time", "type-bool", "type-enum", "type-int", "type-kind", "users-none", "versions", "vpn",
	} {
		refused := false
		for _, f := range fixtures(t, "bad") {
			if f.name() != name {
				continue
			}
			for _, s := range f.sources(t) {
				v, err := asEditor(t, s.Data)
				refused = refused || err != nil || schema.Validate(v) != nil
			}
		}
		if !refused {
			t.Errorf("%s: the schema admits it", name)
		}
	}
}

// TestDocumentedProfile reads the YAML of the reference with the real base.
func TestDocumentedProfile(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(Reference(), -1)
	if len(blocks) == 0 {
		t.Fatal("no example")
	}
	for _, b := range blocks {
		if _, err := Parse(source("base.yaml", mustRead(t, "../../profiles/base.yaml")), Source{"PROFILE.md", b[1]}); err != nil {
			t.Error(err)
		}
	}
}

// TestShowIsYAML reads the merged profile with another reader: all values are
// there, as texts where they are texts.
func TestShowIsYAML(t *testing.T) {
	for _, f := range fixtures(t, "good") {
		p, err := Parse(f.sources(t)...)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.Show(&out, false); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Environment string
			Nodes       []struct {
				Name       any
				Interfaces []struct{ MAC any }
				SystemDisk struct{ Serial any } `yaml:"systemDisk"`
			}
		}
		if err := yaml.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatalf("%s: %v\n%s", f.path, err, out.String())
		}
		for i, n := range p.Cluster.Nodes {
			got := doc.Nodes[i]
			if got.Name != n.Name || got.Interfaces[0].MAC != string(n.Interfaces[0].MAC) || got.SystemDisk.Serial != n.System.Serial {
				t.Errorf("%s: %+v became %+v", f.path, n, got)
			}
		}
		var values []Value
		out.Reset()
		if err := p.Show(&out, true); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &values); err != nil || len(values) != len(p.Values()) {
			t.Errorf("%s: %d values, %v", f.path, len(values), err)
		}
	}
}
