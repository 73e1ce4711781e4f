package yamltree

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestValuesStayAsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"no": "no", "on": "on", "0123": "0123", "1234": "1234", "1e3": "1e3", "0x1F": "0x1F", "0o17": "0o17",
		"52:54:00:12:34:56": "52:54:00:12:34:56", "2026-01-02": "2026-01-02", ".inf": ".inf", "1_000": "1_000",
		`"quoted"`: "quoted", `'it''s'`: "it's", `"a \"b\" \\c"`: `a "b" \c`, "a: b": "", "a #b": "a", "a#b": "a#b",
		"true": "true", `"null"`: "null", "'~'": "~", "größe": "größe", "-": "", "ä b": "ä b",
	} {
		d, findings := Read("p", []byte("key: "+written+"\n"))
		if want == "" {
			if len(findings) == 0 {
				t.Errorf("%s: no finding", written)
			}
			continue
		}
		if len(findings) > 0 {
			t.Errorf("%s: %v", written, findings)
			continue
		}
		if got := d.Root.Get("key").Value; got.Kind != Scalar || got.Text != want {
			t.Errorf("%s: read as %q", written, got.Text)
		}
	}
}

// Names and keys that look a little like secrets, and are none.
func TestNoFalseAlarms(t *testing.T) {
	for _, text := range []string{"docker.internalregistry.example.org", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINXJ6qihKWyirusEsvJI0z7l01boftJK2lgdomTqwJyY a@b",
		"eui.0025385b2140c01f", "https://git.example.org/token/secret", "v1.34.4+k3s1", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="} {
		if _, findings := Read("p", []byte("key: "+text+"\n")); len(findings) > 0 {
			t.Errorf("%s: %v", text, findings)
		}
	}
}

func TestPositions(t *testing.T) {
	d, findings := Read("p", []byte("# ä\r\na:\r\n  - {b: ö, c: d}\r\n"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	c := d.Root.Get("a").Value.Items[0].Get("c")
	if c.Pos.String() != "p:3:12" || c.Value.Pos.String() != "p:3:15" {
		t.Errorf("key at %s, value at %s", c.Pos, c.Value.Pos)
	}
	if got := d.Line(3, 12); got != "  - {b: ö, c: d}" {
		t.Errorf("line %q", got)
	}
}

// A syntax error is placed at the line that has it, not at the start of the
// mapping around it.
func TestSyntaxErrorsAreBlamedOnTheirLine(t *testing.T) {
	head := strings.Repeat("a: 1\n", 1) + "list:\n  - x: 1\n    y: 2\n  - x: 1\n"
	for bad, line := range map[string]int{
		"   z: 2\n":        6,
		"\tz: 2\n":         6,
		"    z: [1, 2\n":   6,
		"    z: 'open\n":   6,
		"    z: a: b\n":    6,
		"    z: {a: b]\n":  6,
		"    z: %x\n":      6,
		"    - z\n":        6,
		"    z: \"a\" b\n": 6,
	} {
		_, findings := Read("p", []byte(head+bad+"  - x: 3\nend: 1\n"))
		if len(findings) != 1 || findings[0].Pos.Line != line || findings[0].Hint == "" || findings[0].Source == "" {
			t.Errorf("%q: %+v", bad, findings)
		}
	}
}

func TestTextThatIsNoText(t *testing.T) {
	for data, want := range map[string]string{
		"\xef\xbb\xbfa: 1":                  "byte order mark",
		"\xff\xfea\x00":                     "UTF-16",
		"a: 1\nb: \xff":                     "p:2:4",
		"a: \x1b[31m":                       "p:1:4",
		"a: 1\rb: 2":                        "U+000D",
		"a: \u2028b":                        "U+2028",
		"a: x\u200by":                       "p:1:5",
		"a: \u202ex":                        "U+202E",
		"":                                  "empty",
		"# only\n":                          "empty",
		"text":                              "single value",
		"[a]":                               "list",
		strings.Repeat("a", MaxSize+1):      "bytes",
		"a: 1\n...\nb: 1\n":                 "",
		"a: " + strings.Repeat("[", 20000):  "",
		"a: " + strings.Repeat("{a: ", 200): "",
		"a: 1\n---\n]":                      "",
		"%YAML 9.9\n---\na: 1":              "",
		"a: &x [*x]":                        "anchor",
		"a: *x":                             "alias",
		"? \"a\\nb\"\n: 1\n":                "not a word",
		"a: \"b\\u0007\"":                   "invisible",
		"a: \"b\\tc\"":                      "invisible",
		"a: >-\n  b\n":                      "block text",
		"a: !!binary aGVsbG8=":              "tag",
		"a: ! b":                            "tag",
		"{a: 1, a: 2}":                      "twice",
		"a: b\n  c":                         "changes",
		"a: 'b\n  c'":                       "changes",
		"a: \"b\\\n  c\"":                   "changes",
		"a: ''":                             "empty text",
		"a:":                                "no value",
		"a: NULL":                           "no value",
		"\"a\": 1\na: 2":                    "twice",
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789: 1":     "GitHub",
		"a: b3BlbnNzaC1rZXktdjEAAAAABG5vbmU=":             "private key",
		"a: eyJhbGciOiJIUzI1NiJ9aaaa.eyJzdWIiOiIxIn0.abc": "web token",
		"a: $6$abcdefgh$abcdefghijklmnopqrstuvwxyz012":    "password hash",
	} {
		d, findings := Read("p", []byte(data))
		if len(findings) == 0 || !strings.Contains(fmt.Sprint(findings), want) {
			t.Errorf("%.40q: want %q, got %v", data, want, findings)
		}
		if d.Root.Kind != Broken && d.Root.Kind != Map {
			t.Errorf("%.40q: the root is %s", data, d.Root.Kind)
		}
	}
}

func TestExcerptsHideSecrets(t *testing.T) {
	for line, want := range map[string]string{
		"  password: x":                      "  password: …",
		"  etcd-s3-secret-key: abc # note":   "  etcd-s3-secret-key: …",
		`  "apiKey": "x"`:                    `  "apiKey": …`,
		"  url: https://a:b@host/x":          "  url: https://…@host/x",
		"  url: https://host/x":              "  url: https://host/x",
		"  keys: [ssh-ed25519 AAAA]":         "  keys: [ssh-ed25519 AAAA]",
		"x: " + strings.Repeat("y", 300):     "x: " + strings.Repeat("y", maxExcerpt-3) + "…",
		"name: n1  # AGE-SECRET-KEY-1QQQQQQ": "",
	} {
		d, _ := Read("p", []byte(line+"\n"))
		if got := d.Line(1, 1); got != want {
			t.Errorf("%q became %q", line, got)
		}
	}
	if d, _ := Read("p", []byte("a: 1\n")); d.Line(0, 1) != "" || d.Line(9, 1) != "" || d.Line(1, 9999) != "" {
		t.Error("a line that is not there")
	}
}

func TestQuoteIsReadBack(t *testing.T) {
	for _, text := range []string{"no", "0123", "1234", "52:54:00:12:34:56", "a: b", "- x", "#", "it's", `a"b\c`, "x y", "1e3", "on", "~", "@x", "2026-01-02"} {
		var got any
		if err := yaml.Unmarshal([]byte("k: "+Quote(text)), &got); err != nil {
			t.Fatal(err)
		}
		if got.(map[string]any)["k"] != text {
			t.Errorf("%q became %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a: 1\n", "a:\n  - b: [c, {d: e}]\n", "a: &x 1\nb: *x\n", "a: |\n  b\n", "a: \"b\\\n c\"\n", "? a\n: b\n", "\t", "a: 'b\n", "---\n---\n", "<<: {}\n", "a: !!str b\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, findings := Read("f", data)
		if d.Root == nil || d.Root.Kind == Broken && len(findings) == 0 {
			t.Fatal("nothing read and nothing said")
		}
		for _, finding := range findings {
			if finding.Pos.Line > len(d.lines) && len(d.lines) > 0 {
				t.Fatalf("a finding after the end: %v", finding)
			}
			_ = finding.String()
		}
	})
}
