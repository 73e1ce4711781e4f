package profile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/slipway/slipway/internal/diag"
)

var update = flag.Bool("update", false, "write what the tests see to their golden files")

// fixture is an archive with an overlay, a base that stands in for the common
// one, and what is expected.
type fixture struct {
	path    string
	archive *txtar.Archive
}

func fixtures(t *testing.T, kind string) []fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/" + kind + "/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no fixtures", err)
	}
	var out []fixture
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fixture{path, a})
	}
	return out
}

func (f fixture) name() string { return strings.TrimSuffix(filepath.Base(f.path), ".txtar") }

func (f fixture) file(name string) []byte {
	for _, file := range f.archive.Files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

// sources are the base and the overlay of a fixture, or the base alone.
func (f fixture) sources(t *testing.T) []Source {
	t.Helper()
	base, overlay := f.file("base.yaml"), f.file("overlay.yaml")
	if base == nil {
		var err error
		if base, err = os.ReadFile("testdata/base.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	if overlay == nil {
		return []Source{{"base.yaml", base}}
	}
	return []Source{{"base.yaml", base}, {"overlay.yaml", overlay}}
}

// check compares with want.txt, or writes it.
func (f fixture) check(t *testing.T, got string) {
	t.Helper()
	if *update {
		kept := f.archive.Files[:0]
		for _, file := range f.archive.Files {
			if file.Name != "want.txt" {
				kept = append(kept, file)
			}
		}
		f.archive.Files = append(kept, txtar.File{Name: "want.txt", Data: []byte(got)})
		if err := os.WriteFile(f.path, txtar.Format(f.archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(f.file("want.txt")); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", f.path, got, want)
	}
}

func TestBadProfiles(t *testing.T) {
	all := fixtures(t, "bad")
	if len(all) < 45 {
		t.Errorf("only %d bad profiles", len(all))
	}
	for _, f := range all {
		t.Run(f.name(), func(t *testing.T) {
			p, err := Parse(f.sources(t)...)
			var list *diag.Error
			if p != nil || !errors.As(err, &list) || len(list.Findings) == 0 {
				t.Fatalf("no finding: %v", err)
			}
			for _, finding := range list.Findings {
				if finding.Pos.File == "" || finding.Message == "" {
					t.Errorf("a finding without place or message: %+v", finding)
				}
			}
			f.check(t, err.Error()+"\n")
		})
	}
}

func TestGoodProfiles(t *testing.T) {
	for _, f := range fixtures(t, "good") {
		t.Run(f.name(), func(t *testing.T) {
			p, err := Parse(f.sources(t)...)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := p.Show(&b, false); err != nil {
				t.Fatal(err)
			}
			f.check(t, b.String())
		})
	}
}

// TestSecretsAreNotRepeated reads the fixtures with secrets: nothing of them
// may be in any finding.
func TestSecretsAreNotRepeated(t *testing.T) {
	for _, f := range fixtures(t, "bad") {
		if !strings.HasPrefix(f.name(), "secret-") {
			continue
		}
		_, err := Parse(f.sources(t)...)
		for _, secret := range []string{"hunter2", "ghp_", "QQQQ", "b3BlbnNzaC1rZXk", "abcdef", "BEGIN OPENSSH"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: a finding repeats %s:\n%v", f.path, secret, err)
			}
		}
	}
}
