package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// rules are all rules of the architecture, by the name of their fixture.
func rules() map[string]func([]pkg) []string {
	return map[string]func([]pkg) []string{
		"floors":    ruleFloors,
		"purity":    rulePurity,
		"owners":    ruleOwners,
		"starters":  ruleStarters,
		"packages":  rulePackages,
		"init":      ruleNoInit,
		"comments":  ruleComments,
		"variables": ruleVariables,
		"sizes":     ruleSizes,
	}
}

func TestRepository(t *testing.T) {
	pkgs, err := load(os.DirFS(filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 30 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range sorted(rule(pkgs)) {
				t.Error(finding)
			}
		})
	}
}

// The stand-in for k3s is a module of its own, so that its dependencies stay out of
// ours; its code is kept by the rules that hold for any code of this house.
func TestLab(t *testing.T) {
	pkgs, err := load(os.DirFS(filepath.Join("..", "..", "vm-test", "labk3s")))
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for _, name := range []string{"packages", "init", "comments", "variables", "sizes"} {
		t.Run(name, func(t *testing.T) {
			for _, finding := range sorted(rules()[name](pkgs)) {
				t.Error(finding)
			}
		})
	}
}

// Each fixture is a small module that breaks one rule in every way it can be
// broken, beside code that looks alike and is fine, and a file "want" with exactly
// the findings that it must give.
func TestRulesCanFail(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			module, want := fixture(archive)
			pkgs, err := load(module)
			if err != nil {
				t.Fatal(err)
			}
			if got := sorted(rule(pkgs)); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func fixture(a *txtar.Archive) (module fs.FS, want []string) {
	files := fstest.MapFS{}
	for _, f := range a.Files {
		if f.Name == "want" {
			want = sorted(strings.Split(strings.TrimSpace(string(f.Data)), "\n"))
			continue
		}
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files, want
}

func sorted(findings []string) []string {
	slices.Sort(findings)
	return findings
}

// A row of a table that names nothing would allow what nobody meant any more.
func TestTablesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	for dir := range floors {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("floors: %v", err)
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for library, holders := range owners {
		if !slices.ContainsFunc(strings.Split(string(mod), "\n"), func(line string) bool {
			required, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			return required != "" && strings.HasPrefix(library+"/", required+"/") || strings.HasPrefix(required, library+"/v")
		}) {
			t.Errorf("owners: %s is not in go.mod", library)
		}
		for _, h := range holders {
			if h == driversAndUp || h == testsOnly {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, h)); err != nil {
				t.Errorf("owners: %v", err)
			}
		}
	}
}
