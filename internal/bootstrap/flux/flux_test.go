package flux

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
)

func defines(group string, kinds ...string) []map[string]any {
	var out []map[string]any
	for _, kind := range kinds {
		out = append(out, map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"group": group, "names": map[string]any{"kind": kind}}})
	}
	return out
}

type nothing struct{}

func (nothing) Changes(context.Context) ([]sequence.Change, error) { return nil, nil }
func (nothing) Apply(context.Context, sequence.Tell) error         { return nil }

func TestComponentsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		objects []map[string]any
		want    string
	}{
		"complete":    {defines("x.toolkit.fluxcd.io", required...), ""},
		"no Helm":     {defines("x.toolkit.fluxcd.io", "GitRepository", "Kustomization"), "do not define HelmRelease, HelmChart"},
		"other group": {defines("example.org", required...), "do not define GitRepository"},
	} {
		_, err := Install(Flux{Version: "2.9.5", Objects: c.objects, Components: nothing{}, Secrets: nothing{}, Source: nothing{}})[0].Observe(t.Context())
		if c.want == "" && err != nil || c.want != "" && (exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestProven(t *testing.T) {
	for name, c := range map[string]struct {
		proof Proof
		err   error
		want  string
	}{
		"opened":          {Proof{Revision: "main@sha1:1", Opened: []string{"a.yaml"}}, nil, ""},
		"nothing to open": {Proof{Revision: "main@sha1:1"}, nil, ""},
		"wrong key":       {Proof{}, errors.New("clusters/lab/a.yaml: no identity opens it"), "no identity opens it"},
		"as it is": {Proof{Revision: "main@sha1:1", Undecrypted: []diag.Finding{{Pos: diag.Pos{File: "apps.yaml"}, Message: "kustomization apps has no decryption", Hint: "add it"}}}, nil,
			"at main@sha1:1 Flux would apply what is encrypted as it is: apps.yaml: kustomization apps has no decryption"},
	} {
		changes, err := Proven(func(context.Context) (Proof, error) { return c.proof, c.err }).Observe(t.Context())
		if len(changes) > 0 || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %v, want %q", name, changes, err, c.want)
		}
		if name == "as it is" && (exit.Of(err) != exit.Refused || diag.HintOf(err) != "add it") {
			t.Errorf("%s: code %d, hint %q", name, exit.Of(err), diag.HintOf(err))
		}
	}
}
