package sbom

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

func inputs(t *testing.T) Inputs {
	t.Helper()
	// A test binary does not say which modules it is made of: build one that does.
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/program").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return Inputs{
		Name: "slipway-lab", Suite: "trixie", Plan: digest.Of([]byte("plan")), Epoch: 1700000000,
		Packages: []Package{
			{Name: "libstdc++6", Version: "14.2.0-19", Arch: "amd64", Digest: digest.Of([]byte("a"))},
			{Name: "bash", Version: "5.2.37-2+b5", Arch: "amd64", Digest: digest.Of([]byte("b"))},
			{Name: "vim", Version: "2:9.1~rc1", Arch: "all"},
		},
		Binaries: []Binary{{Name: "nodeinit", Path: program}},
		Files: []File{
			{Name: "cilium-chart", Version: "1.20.2", URL: "pkg:golang/github.com/cilium/cilium@v1.20.2#install/kubernetes/cilium", Digest: digest.Of([]byte("c"))},
			{Name: "k3s", Version: "v1.34.4+k3s1", URL: "https://example.org/k3s", Digest: digest.Of([]byte("k"))},
			{Name: "images", Version: "local"},
		},
	}
}

type component struct {
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Purl    string `json:"purl"`
	Hashes  []struct{ Alg, Content string }
}

func decode(t *testing.T, data []byte) (out struct {
	SpecVersion  string
	SerialNumber string
	Metadata     struct{ Timestamp string }
	Components   []component
	Dependencies []struct {
		Ref       string
		DependsOn []string
	}
}) {
	t.Helper()
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryPackageAndModuleIsNamed(t *testing.T) {
	in := inputs(t)
	data, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	bom := decode(t, data)
	if bom.SpecVersion != "1.6" || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("version %q, time %q", bom.SpecVersion, bom.Metadata.Timestamp)
	}
	byPurl := map[string]component{}
	for _, c := range bom.Components {
		byPurl[c.Purl] = c
	}
	for _, purl := range []string{
		"pkg:deb/debian/libstdc%2B%2B6@14.2.0-19?arch=amd64&distro=trixie",
		"pkg:deb/debian/bash@5.2.37-2%2Bb5?arch=amd64&distro=trixie",
		"pkg:deb/debian/vim@2:9.1~rc1?arch=all&distro=trixie",
	} {
		if byPurl[purl].Name == "" {
			t.Errorf("%s is missing", purl)
		}
	}
	bash := byPurl["pkg:deb/debian/bash@5.2.37-2%2Bb5?arch=amd64&distro=trixie"]
	if len(bash.Hashes) != 1 || bash.Hashes[0].Content != in.Packages[1].Digest.Hex() {
		t.Errorf("hash of bash: %v", bash.Hashes)
	}
	chart := byPurl["pkg:golang/github.com/cilium/cilium@v1.20.2#install/kubernetes/cilium"]
	if chart.Name != "cilium-chart" || len(chart.Hashes) != 1 {
		t.Errorf("the chart is %+v", chart)
	}
	for _, name := range []string{"k3s", "images"} {
		if !slices.ContainsFunc(bom.Components, func(c component) bool { return c.Name == name && c.Purl == "" }) {
			t.Errorf("%s is missing", name)
		}
	}
	if !bytes.Contains(data, []byte(`"url": "https://example.org/k3s"`)) {
		t.Error("nobody learns where k3s comes from")
	}
	// The go command is the foreign reader of what is linked into the binary.
	out, err := exec.Command("go", "version", "-m", in.Binaries[0].Path).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
			n++
			purl := "pkg:golang/" + strings.ToLower(f[1]) + "@" + f[2]
			if byPurl[purl].Name != f[1] {
				t.Errorf("%s is missing", purl)
			}
		}
	}
	if n == 0 {
		t.Error("go version -m names no module")
	}
	if !slices.ContainsFunc(bom.Components, func(c component) bool { return strings.HasPrefix(c.Purl, "pkg:golang/stdlib@1.") }) {
		t.Error("the standard library is missing")
	}
	refs := map[string]bool{"image": true}
	for _, c := range bom.Components {
		refs[c.Ref] = true
	}
	for _, d := range bom.Dependencies {
		for _, r := range append(d.DependsOn, d.Ref) {
			if !refs[r] {
				t.Errorf("dependency on unknown %q", r)
			}
		}
	}
}

func TestOrderOfInputsDoesNotMatter(t *testing.T) {
	in := inputs(t)
	a, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(in.Packages)
	b, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("another order, another document")
	}
}

func TestCheck(t *testing.T) {
	in := inputs(t)
	data, err := Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Check(data, in.Plan, in.Epoch); err != nil || n != 10 {
		t.Errorf("%d, %v", n, err)
	}
	other := digest.Of([]byte("other"))
	twice := bytes.Replace(data, []byte("debian/vim@2:9.1~rc1?arch=all"), []byte("debian/bash@5.2.37-2%2Bb5?arch=amd64"), 2)
	for want, check := range map[string]func() (int, error){
		"serial number":   func() (int, error) { return Check(data, other, in.Epoch) },
		"time is not":     func() (int, error) { return Check(data, in.Plan, 5) },
		"not CycloneDX":   func() (int, error) { return Check([]byte("{"), in.Plan, in.Epoch) },
		"is listed twice": func() (int, error) { return Check(twice, in.Plan, in.Epoch) },
		"format is":       func() (int, error) { return Check([]byte("{}"), in.Plan, in.Epoch) },
	} {
		if _, err := check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestBinaryThatIsNoneIsAnError(t *testing.T) {
	in := inputs(t)
	in.Binaries[0].Path = filepath.Join(t.TempDir(), "none")
	if _, err := Encode(in); err == nil || !strings.Contains(err.Error(), "nodeinit") {
		t.Errorf("got %v", err)
	}
}
