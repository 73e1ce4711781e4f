package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const labProfile = "../../profiles/lab.yaml"

// seedRun runs imagebuild seed for node n1 of the lab.
func seedRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, talk bytes.Buffer
	code = run(append([]string{"seed", "-p", labProfile}, args...), strings.NewReader(""), &out, &talk)
	return code, out.String(), talk.String()
}

func place(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSeedFormats(t *testing.T) {
	for _, format := range []string{"dir", "iso", "fat"} {
		path := filepath.Join(t.TempDir(), "seed")
		for range 2 { // the second time over its own output
			code, out, talk := seedRun(t, "--node", "n1", "--format", format, "-O", path)
			if code != 0 || !strings.Contains(out, path) || !strings.Contains(out, "instance n1-") || talk != "" {
				t.Errorf("%s: exit %d, said %q and %q", format, code, out, talk)
			}
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("%s left %v", format, left)
		}
	}
}

func TestSeedPrint(t *testing.T) {
	code, out, _ := seedRun(t, "--node", "n1", "--print")
	if code != 0 || !strings.Contains(out, "# ---- network-config\n") || !strings.Contains(out, `macaddress: "52:54:00:12:34:56"`) {
		t.Errorf("exit %d, said\n%s", code, out)
	}
	code, out, _ = seedRun(t, "--node", "n1", "--print", "-o", "json")
	var r seedResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	if r.Node != "n1" || r.Path != "" || !strings.HasPrefix(r.Documents["user-data"], "#cloud-config\n") {
		t.Errorf("got %+v", r)
	}
}

func TestSeedProtectsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "photos")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(foreign, "cat.jpg"), "cat")
	file := filepath.Join(dir, "letter")
	place(t, file, strings.Repeat("dear ", 10000))
	for name, args := range map[string][]string{
		"a foreign directory": {"-O", foreign},
		"a foreign file":      {"-O", file, "--format", "iso"},
		"a file for a dir":    {"-O", file, "--force"},
		"a dir for a file":    {"-O", foreign, "--format", "fat", "--force"},
		"a device":            {"-O", "/dev/null", "--format", "iso", "--force"},
	} {
		code, _, talk := seedRun(t, append(args, "--node", "n1")...)
		if code != 3 || !strings.Contains(talk, "hint: choose another -O") {
			t.Errorf("%s: exit %d, said %q", name, code, talk)
		}
	}
	if code, _, talk := seedRun(t, "--node", "n1", "-O", foreign, "--force"); code != 0 {
		t.Errorf("force: exit %d, said %q", code, talk)
	}
	if got, _ := os.ReadFile(filepath.Join(foreign, "cat.jpg")); string(got) != "cat" {
		t.Error("force deleted a foreign file")
	}
}

// Another seed is somebody's work, too: it is replaced when that was said.
func TestSeedOverAnotherSeed(t *testing.T) {
	for _, format := range []string{"dir", "iso", "fat"} {
		path := filepath.Join(t.TempDir(), "seed")
		if code, _, talk := seedRun(t, "--node", "n2", "--format", format, "-O", path); code != 0 {
			t.Fatalf("%s: exit %d, %s", format, code, talk)
		}
		code, _, talk := seedRun(t, "--node", "n1", "--format", format, "-O", path)
		if code != 3 || !strings.Contains(talk, "holds another seed") || !strings.Contains(talk, "--force to replace it") {
			t.Errorf("%s: exit %d, said %q", format, code, talk)
		}
		if code, _, talk := seedRun(t, "--node", "n1", "--format", format, "-O", path, "--force"); code != 0 {
			t.Errorf("%s: exit %d, said %q", format, code, talk)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("%s left %v", format, left)
		}
	}
	// A document that somebody wrote by hand, and none of the others.
	dir := t.TempDir()
	place(t, filepath.Join(dir, "user-data"), "#cloud-config\n")
	if code, _, talk := seedRun(t, "--node", "n1", "-O", dir); code != 3 || !strings.Contains(talk, "user-data would be replaced") {
		t.Errorf("exit %d, said %q", code, talk)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "user-data")); string(got) != "#cloud-config\n" {
		t.Error("it was replaced")
	}
}

func TestSeedBadUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"no node given":           {"--print"},
		"nowhere to write":        {"--node", "n1"},
		"unknown format":          {"--node", "n1", "-O", "x", "--format", "zip"},
		"its nodes are n1, n2":    {"--node", "n9", "--print"},
		"there is no file nix.ya": {"--node", "n1", "--print", "-p", "nix.yaml"},
	} {
		if code, out, talk := seedRun(t, args...); code != 2 || out != "" || !strings.Contains(talk, want) {
			t.Errorf("%s: exit %d, said %q and %q", want, code, out, talk)
		}
	}
}
