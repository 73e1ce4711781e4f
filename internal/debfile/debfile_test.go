package debfile

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

// pack makes a real package with dpkg-deb.
func pack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control":     "Package: sample\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: sample\n",
		"usr/lib/sample/one": "one",
		"usr/lib/sample/two": strings.Repeat("two", 100_000),
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(t.TempDir(), "sample.deb")
	if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "dpkg-deb", Args: []string{"--build", "--root-owner-group", dir, deb}}); err != nil {
		t.Fatal(err)
	}
	return deb
}

func TestExtract(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "deep", "one")
	if err := Extract(t.Context(), pack(t), map[string]string{"usr/lib/sample/one": dst}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dst); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestExtractNamesWhatIsMissing(t *testing.T) {
	err := Extract(t.Context(), pack(t), map[string]string{"usr/lib/sample/three": filepath.Join(t.TempDir(), "x")})
	if err == nil || !strings.Contains(err.Error(), "sample.deb holds no usr/lib/sample/three") {
		t.Errorf("got %v", err)
	}
}

func TestWalkStopsWithTheVisitorsError(t *testing.T) {
	err := Walk(t.Context(), pack(t), func(string, io.Reader) error { return io.ErrShortBuffer })
	if err == nil || !strings.Contains(err.Error(), io.ErrShortBuffer.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestWalkRefusesWhatIsNoPackage(t *testing.T) {
	p := filepath.Join(t.TempDir(), "broken.deb")
	if err := os.WriteFile(p, []byte("not a package"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Walk(t.Context(), p, func(string, io.Reader) error { return nil }); err == nil || !strings.Contains(err.Error(), "broken.deb") {
		t.Errorf("got %v", err)
	}
}
