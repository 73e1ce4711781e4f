package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/digest"
)

func inputs() Inputs {
	d := func(s string) digest.Digest { return digest.Of([]byte(s)) }
	return Inputs{
		Files: []artifact.File{
			{Name: "disk.raw", Role: artifact.RoleDiskRaw, Digest: d("raw")},
			{Name: "initrd", Role: artifact.RoleInitrd, Digest: d("initrd")},
			{Name: "provenance.json", Role: artifact.RoleProvenance},
		},
		Profile: []Source{{"lab.yaml", d("lab")}, {"base.yaml", d("base")}},
		Plan:    d("plan"), Epoch: 1700000000, Version: "v0.1.0",
		Pins:  []Pin{{URI: "pkg:deb/debian/bash@5.2", Name: "bash", Digest: d("bash")}, {URI: "pkg:deb/debian/apt@3", Name: "apt", Digest: d("apt")}},
		Tools: []Tool{{"mksquashfs", "4.5.1"}, {"mcopy", "4.0"}},
	}
}

func encode(t *testing.T, in Inputs) []byte {
	t.Helper()
	data, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStatementHasTheFormOfSLSA(t *testing.T) {
	var got struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   map[string]any
				ResolvedDependencies []struct {
					Name, URI string
					Digest    map[string]string
				}
			}
			RunDetails struct {
				Builder struct {
					ID                  string
					BuilderDependencies []struct{ Name string }
				}
			}
		}
	}
	in := inputs()
	if err := json.Unmarshal(encode(t, in), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "https://in-toto.io/Statement/v1" || len(got.Subject) != 2 {
		t.Errorf("type %q, %d subjects", got.Type, len(got.Subject))
	}
	if got.Subject[0].Digest["sha256"] != "" || got.Subject[0].Digest["slipwayTreeSha256"] != in.Files[0].Digest.Hex() {
		t.Errorf("the raw image's digest goes by a wrong name: %v", got.Subject[0].Digest)
	}
	if got.Subject[1].Digest["sha256"] != in.Files[1].Digest.Hex() {
		t.Errorf("digest of the initrd: %v", got.Subject[1].Digest)
	}
	deps := got.Predicate.BuildDefinition.ResolvedDependencies
	if len(deps) != 2 || deps[0].Name != "apt" || deps[1].Digest["sha256"] != in.Pins[0].Digest.Hex() {
		t.Errorf("dependencies: %v", deps)
	}
	if got.Predicate.BuildDefinition.ExternalParameters["plan"] != in.Plan.String() || len(got.Predicate.RunDetails.Builder.BuilderDependencies) != 2 {
		t.Errorf("predicate: %+v", got.Predicate)
	}
}

func TestOrderOfInputsDoesNotMatter(t *testing.T) {
	a, b := inputs(), inputs()
	slices.Reverse(b.Pins)
	slices.Reverse(b.Tools)
	slices.Reverse(b.Files)
	if !bytes.Equal(encode(t, a), encode(t, b)) {
		t.Error("another order, another document")
	}
}

func TestCheckHoldsItAgainstTheIndex(t *testing.T) {
	in := inputs()
	data := encode(t, in)
	index := func() artifact.Index {
		return artifact.Index{Plan: in.Plan, Epoch: in.Epoch, Files: slices.Clone(in.Files)}
	}
	if err := Check(data, index()); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*artifact.Index){
		"plan is":                    func(x *artifact.Index) { x.Plan = digest.Of(nil) },
		"epoch is":                   func(x *artifact.Index) { x.Epoch++ },
		"subject initrd has another": func(x *artifact.Index) { x.Files[1].Digest = digest.Of(nil) },
		"subject initrd is not in":   func(x *artifact.Index) { x.Files = x.Files[:1] },
		"subject zz is missing":      func(x *artifact.Index) { x.Files[2] = artifact.File{Name: "zz", Role: artifact.RoleIPXE} },
	} {
		x := index()
		change(&x)
		if err := Check(data, x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, bad := range []string{"", "{}", "[]", string(data) + "{}", strings.Replace(string(data), "subject", "subjekt", 1)} {
		if Check([]byte(bad), index()) == nil {
			t.Errorf("accepted %.20q", bad)
		}
	}
}

func TestHostToolsAreAsked(t *testing.T) {
	want := ""
	for range 5 { // a race between the two outputs of a tool shows only now and then
		got, err := HostTools(t.Context(), "mmdebstrap", "mksquashfs", "veritysetup", "mkfs.vfat", "mcopy", "qemu-img", "depmod")
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range got {
			if !version.MatchString(tool.Version) || strings.Contains(tool.Version, "\n") {
				t.Errorf("%s says %q", tool.Name, tool.Version)
			}
		}
		if text := fmt.Sprint(got); want == "" {
			want = text
		} else if text != want {
			t.Fatalf("said %s, and before %s", text, want)
		}
	}
	if _, err := HostTools(t.Context(), "no-such-tool"); err == nil {
		t.Error("a missing tool is no error")
	}
}
