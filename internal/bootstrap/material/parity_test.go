package material

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/slipway/slipway/internal/bootstrap/gitops"
	"github.com/slipway/slipway/internal/bootstrap/parity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/secrets"
)

// standIn is a chart of one ConfigMap that holds all values but the one called
// comment, and a certificate that no two renderings share.
type standIn struct{ renderings int }

func (c *standIn) Effective(values map[string]any) (map[string]any, error) {
	out := map[string]any{"ipam": map[string]any{"mode": "cluster-pool"}, "debug": false}
	return layer(out, values), nil
}

func (c *standIn) Files() (map[string][]byte, error) {
	return map[string][]byte{"Chart.yaml": []byte("name: cilium\n"), "templates/a.yaml": []byte("kind: ConfigMap\n")}, nil
}

func layer(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for key, v := range b {
		if below, ok := v.(map[string]any); ok {
			there, _ := out[key].(map[string]any)
			v = layer(there, below)
			if there == nil {
				v = layer(map[string]any{}, below)
			}
		}
		out[key] = v
	}
	return out
}

func (c *standIn) Render(values map[string]any) ([]map[string]any, error) {
	if values["broken"] == true {
		return nil, errors.New("the chart cannot be rendered")
	}
	c.renderings++
	effective, _ := c.Effective(values)
	delete(effective, "comment")
	return []map[string]any{
		{"kind": "ConfigMap", "metadata": map[string]any{"name": "cilium-config", "namespace": "kube-system"}, "data": effective},
		{"kind": "Secret", "type": "kubernetes.io/tls", "metadata": map[string]any{"name": "hubble-certs"}, "data": map[string]any{"tls.crt": fmt.Sprint(c.renderings)}},
	}, nil
}

// running is what runs in every case.
var running = parity.Release{
	Name: "cilium", Namespace: "kube-system", Chart: "cilium", Version: "1.20.2",
	Values: map[string]any{"kubeProxyReplacement": true, "k8sServiceHost": "127.0.0.1", "k8sServicePort": 6443},
}

// The cases of testdata/parity: a repository each, with the findings that are
// expected in the comment; none means that Flux may take over.
func TestParity(t *testing.T) {
	cases, err := filepath.Glob("testdata/parity/*.txtar")
	if err != nil || len(cases) < 8 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	ids, err := secrets.Parse([]byte(key.String()), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := judge(t, archive, ids, key.Recipient().String())
			if want := strings.TrimSpace(string(archive.Comment)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// judge builds the repository of a case, sealing the files whose names say so, and
// returns the findings as text.
func judge(t *testing.T, archive *txtar.Archive, ids secrets.Identities, recipient string) string {
	t.Helper()
	files := gitops.Files{}
	for _, f := range archive.Files {
		files[f.Name] = f.Data
		if strings.Contains(f.Name, ".sops.") {
			sealed, err := secrets.Encrypt(f.Data, []string{recipient}, secrets.ObjectValues, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = sealed
		}
	}
	tree, err := gitops.Build(files, gitops.Options{
		Path: "clusters/lab", Encrypted: secrets.Encrypted,
		Open: func(b []byte) ([]byte, error) { return secrets.Decrypt(b, ids) },
	})
	if err != nil {
		return "error: " + err.Error() + "\n  hint: " + diag.HintOf(err)
	}
	verdict, err := parity.Judge(running, &standIn{}, repository{tree})
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, f := range append(tree.Undecrypted(), verdict.Findings...) {
		out = append(out, f.String())
	}
	text := strings.TrimSpace(strings.Join(out, "\n"))
	if strings.Contains(text, "canary") {
		t.Errorf("a finding shows an encrypted value:\n%s", text)
	}
	return text
}
