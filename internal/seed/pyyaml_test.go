package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// cloud-init and netplan read what we write with PyYAML and libyaml, by the rules
// of YAML 1.1; PyYAML is therefore the reader of these tests.
const loader = `import json, sys, yaml
json.dump([yaml.safe_load(d) for d in json.load(sys.stdin)], sys.stdout)`

func pyyaml(t *testing.T, docs []string) []any {
	t.Helper()
	in, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "python3", Args: []string{"-c", loader}, Stdin: bytes.NewReader(in)})
	if err != nil {
		t.Fatalf("reading with PyYAML (package python3-yaml): %v", err)
	}
	var parsed []any
	if err := json.Unmarshal(out, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// generic is v as PyYAML should see it. It goes through nodes, not through text.
func generic(t *testing.T, v any) any {
	t.Helper()
	var node yaml.Node
	if err := node.Encode(v); err != nil {
		t.Fatal(err)
	}
	var out any
	if err := node.Decode(&out); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// nasty are texts that some reader of YAML takes for something else.
func nasty() []string {
	return strings.Fields(`52:54:00:12:34:56 1:30 -1:30 190:20:30 1:30:00.5 02:00:00:00:00:01
		no No NO on ON off y n Y N yes true True TRUE false null Null NULL ~ .
		0123 1234 09 0o14 0x1F 0b101 1_000 +1 -1 1e3 1E3 1.5e3 1.5e+3 .5 1. 1_0.5 0 00 -0
		.inf -.inf +.INF .nan .NaN 2001-12-14 2001-12-14T21:59:43.10-05:00 2001-12-14t21:59:43Z
		= << <<: - -- --- ... ? : :a a: a:b a#b #a & &a * *a ! !a !!str % %a @ @a | > " ' \ [ ] { } [] {} , a,b
		"a" 'a' a"b a'b a\b a\nb é 日本 ☃ null: off: x:y:z` + " `a") // a backquote cannot stand in a raw string
}

func texts() []string {
	return append(nasty(), "", " ", "  a", "a ", "a b", "a: b", "a # b", "- a", "a\tb", "\ta", "a\nb", "a\nb\n", "a\n\n", "\na", "\n", " a\nb\n",
		"a \nb\n", "a\n b\n", "a\r\nb\n", "a\u0085b", "a\u2028b", "\ufeffa", "a\u00a0b", "\x1b[0m", "\U0001f600", "#!/bin/sh\nexit 0\n", "%YAML 1.2", "--- a\n", "a\n---\nb\n", "a\n...\n", strings.Repeat("long words ", 40))
}

// The library cannot write a block that begins with white space in every place;
// no seed has one, and it is an error then, not another text.
func TestTextsStayTexts(t *testing.T) {
	var all, docs []string
	for _, s := range texts() {
		if _, err := yamlform.Marshal("", []string{s}); err != nil && strings.TrimLeft(s, " \n") != s {
			continue
		}
		for _, v := range []any{map[string]any{"k": s, "l": []string{s, s}}, map[string]string{s: s}} {
			doc, err := yamlform.Marshal("#cloud-config\n", v)
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			docs = append(docs, string(doc))
		}
		all = append(all, s)
	}
	parsed := pyyaml(t, docs)
	for i, s := range all {
		if want := any(map[string]any{"k": s, "l": []any{s, s}}); !reflect.DeepEqual(parsed[2*i], want) {
			t.Errorf("%q came back as %#v from\n%s", s, parsed[2*i], docs[2*i])
		}
		if want := any(map[string]any{s: s}); !reflect.DeepEqual(parsed[2*i+1], want) {
			t.Errorf("key %q came back as %#v from\n%s", s, parsed[2*i+1], docs[2*i+1])
		}
	}
}

// TestTextsStayTexts could not fail if its reader were too kind.
func TestReaderReinterprets(t *testing.T) {
	for i, got := range pyyaml(t, []string{"52:54:00:12:34:56", "no", "0123", "1.5e+3"}) {
		if _, text := got.(string); text {
			t.Errorf("document %d was read as the text %q", i, got)
		}
	}
}

// Whatever a cluster holds, PyYAML reads exactly what was meant.
func TestRandomClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var docs []string
	var want []any
	for range 60 {
		c := randomCluster(r)
		node := c.Nodes[0]
		seed, err := For(c, node)
		if err != nil {
			t.Fatal(err)
		}
		user, err := userData(c, node)
		if err != nil {
			t.Fatal(err)
		}
		network, err := networkConfig(c.Network, c.Time, node)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(seed.UserData), string(seed.NetworkConfig), string(seed.MetaData))
		want = append(want, generic(t, user), generic(t, network),
			map[string]any{"instance-id": seed.InstanceID, "local-hostname": node.Name})
	}
	for i, got := range pyyaml(t, docs) {
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("got  %v\nwant %v\nfrom\n%s", got, want[i], docs[i])
		}
	}
}

func randomCluster(r *rand.Rand) cluster.Cluster {
	words := nasty()
	word := func() string { return words[r.IntN(len(words))] }
	some := func() []string {
		var out []string
		for range r.IntN(4) {
			out = append(out, word())
		}
		return out
	}
	c := rack()
	c.Network.Gateway = c.Nodes[0].Interfaces[0].Addresses[0].Addr().Next()
	c.Nodes = c.Nodes[:1]
	c.Nodes[0].Name = word()
	for i := range c.Nodes[0].Interfaces {
		c.Nodes[0].Interfaces[i].MAC = cluster.MAC(fmt.Sprintf("%02d:%02d:00:%02d:34:5%d", r.IntN(60), r.IntN(60), r.IntN(60), i))
	}
	c.Environment, c.Name, c.Time.Zone, c.System.Locale = word(), word(), word(), word()
	c.System.Modules, c.Time.Servers, c.Proxy.NoProxy = some(), some(), some()
	c.System.Sysctls = map[string]string{word(): word(), word(): word()}
	c.Access.Users = []cluster.User{{Name: word(), Keys: some(), Sudo: r.IntN(2) == 0}}
	return c
}
