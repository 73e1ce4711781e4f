package profile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/profile/form"
	"github.com/slipway/slipway/internal/profile/yamltree"
)

// TestEveryKeyIsDecodable walks over the types: each field has a key, a sentence,
// and, where it is a text, a form that exists.
func TestEveryKeyIsDecodable(t *testing.T) {
	forms := form.All()
	walkFields(func(path string, f field) {
		if f.Key == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s (field %d): no key or no sentence", path, f.Index)
		}
		item := f.Type
		if kind := item.Kind(); kind == reflect.Map || kind == reflect.Slice && !isText(item) {
			item = item.Elem()
		}
		switch kind := item.Kind(); {
		case isGroup(item), kind == reflect.Bool, kind == reflect.Int:
			if f.Form != "" {
				t.Errorf("%s: a form for %s", path, item)
			}
		case valuesOf(item) == nil:
			if _, ok := forms[f.Form]; !ok {
				t.Errorf("%s: no form %q", path, f.Form)
			}
		}
		if f.Type.Kind() == reflect.Map {
			if _, ok := forms[f.KeyForm]; !ok {
				t.Errorf("%s: no form %q for its keys", path, f.KeyForm)
			}
		}
	})
}

// TestDefaultsAreValid decodes every default: decoding must find nothing.
func TestDefaultsAreValid(t *testing.T) {
	rep := &reporter{}
	d := decoder{rep: rep, forms: form.All(), origins: newOrigins()}
	var c cluster.Cluster
	d.root(&yamltree.Node{Kind: yamltree.Map}, &c, true)
	if err := rep.err(); err != nil {
		t.Error(err)
	}
	if c.Network.ClusterDomain != "" || c.Image.SlotSize != cluster.SizeAuto || c.Time.Zone != "UTC" || c.System.RebootAfter != 60 {
		t.Errorf("%+v", c)
	}
}

func source(name, text string) Source { return Source{name, []byte(text)} }

func mustRead(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMerge shows what an overlay does to the base: keys of mappings are added
// and replaced, lists are replaced, and every value knows its place.
func TestMerge(t *testing.T) {
	base := mustRead(t, "testdata/base.yaml") + "time:\n  zone: Europe/Berlin\n  servers: [a.example.org, b.example.org]\n"
	overlay := mustRead(t, "testdata/overlay.yaml") + "time:\n  servers: [c.example.org]\n"
	p, err := Parse(source("base.yaml", base), source("over.yaml", overlay))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Cluster.Time); got != "{Europe/Berlin [c.example.org]}" {
		t.Error(got)
	}
	for path, want := range map[string]string{"time.zone": "base.yaml", "time.servers[0]": "over.yaml", "network.podCIDR": "base.yaml", "nodes[0].name": "over.yaml"} {
		if pos, ok := p.Origin(path); !ok || pos.File != want || pos.Line == 0 {
			t.Errorf("%s is from %s", path, pos)
		}
	}
	if pos, ok := p.Origin("image.slotSize"); ok {
		t.Errorf("a default from %s", pos)
	}
}

func TestExtends(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\nextends: base.yaml\n": "base.yaml", "version: 1\n": "",
		"extends: base.yaml\nnodes: [": "error", "extends: ../base.yaml": "error", "extends: [a]": "error", "extends: .hidden.yaml": "error",
		"extends: base": "error", "extends: /etc/base.yaml": "error",
	} {
		got, err := Extends(source("x.yaml", text))
		var list *diag.Error
		if err != nil && !errors.As(err, &list) || (want == "error") != (err != nil) || err == nil && got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestNumberOfFiles(t *testing.T) {
	base := source("base.yaml", mustRead(t, "testdata/base.yaml"))
	if p, err := Parse(base); err != nil || !p.Base {
		t.Errorf("a base alone: %v", err)
	}
	if _, err := Parse(base, base, base); err == nil {
		t.Error("three files")
	}
	if _, err := Parse(); err == nil {
		t.Error("no file")
	}
}

// TestRubbishIsRefusedSoon bounds the time that a large file may take, far
// above what it needs.
func TestRubbishIsRefusedSoon(t *testing.T) {
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "k%d:\n", i)
	}
	for name, text := range map[string]string{
		"keys":     keys.String(),
		"list":     "nodes:\n" + strings.Repeat("- {}\n", 200_000),
		"line":     "a: " + strings.Repeat("b ", 500_000),
		"deep":     "a: " + strings.Repeat("{b: ", 9_000) + strings.Repeat("}", 9_000),
		"brackets": strings.Repeat("[", 1<<20),
		"open":     strings.Repeat("a: [\n", 200_000),
		"comments": strings.Repeat("# a\n", 250_000) + "a: 1\n",
	} {
		start := time.Now()
		if _, err := Parse(source(name, text)); err == nil {
			t.Errorf("%s: no finding", name)
		}
		t.Logf("%s: %v", name, time.Since(start).Round(time.Millisecond))
	}
}

func FuzzParse(f *testing.F) {
	base := mustRead(f, "testdata/base.yaml")
	f.Add(mustRead(f, "../../profiles/lab.yaml"))
	f.Add(mustRead(f, "../../profiles/prod.yaml"))
	f.Add("version: 1\nextends: base.yaml\nnodes: [{name: n1, interfaces: [{mac: x}]}]\n")
	f.Fuzz(func(t *testing.T, overlay string) {
		p, err := Parse(source("base.yaml", base), source("over.yaml", overlay))
		var list *diag.Error
		switch {
		case err == nil:
			if err := p.Show(new(strings.Builder), false); err != nil {
				t.Fatal(err)
			}
		case !errors.As(err, &list) || len(list.Findings) == 0:
			t.Fatalf("an error without findings: %v", err)
		}
	})
}
