package labbin

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tree writes a module with one program and two packages, one of which it does not use.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "labk3s")
	for name, text := range map[string]string{
		"go.mod":                 "module " + modulePath + "\n",
		"go.sum":                 "",
		"../labbin/labbin.go":    "package labbin\n",
		"cmd/one/main.go":        "package main\n\nimport _ \"" + modulePath + "/used\"\n",
		"used/used.go":           "package used\n\nimport _ \"" + modulePath + "/below\"\n",
		"used/used_test.go":      "package used\n",
		"below/below.go":         "package below\n\nimport _ \"embed\"\n",
		"below/data.yaml":        "a: 1\n",
		"elsewhere/elsewhere.go": "package elsewhere\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func key(t *testing.T, dir string) string {
	t.Helper()
	k, err := sourceKey(dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyCoversWhatCounts(t *testing.T) {
	for name, changes := range map[string]bool{
		"go.mod":                 true,
		"go.sum":                 true,
		"../labbin/labbin.go":    true,
		"cmd/one/main.go":        true,
		"used/used.go":           true,
		"below/below.go":         true,
		"below/data.yaml":        true,
		"used/used_test.go":      false,
		"elsewhere/elsewhere.go": false,
	} {
		dir := tree(t)
		before := key(t, dir)
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text)+"// changed\n")
		if changed := key(t, dir) != before; changed != changes {
			t.Errorf("a change of %s: another key %v, want %v", name, changed, changes)
		}
	}
}

func TestClosure(t *testing.T) {
	got, err := closure(tree(t), "cmd/one")
	if want := []string{"below", "cmd/one", "used"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
