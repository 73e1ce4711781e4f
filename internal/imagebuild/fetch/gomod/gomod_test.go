package gomod_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod/gomodtest"
)

func download(t *testing.T) gomod.Module {
	t.Helper()
	gomodtest.NewProxy(t).Add(t, "example.org/chart", "v1.2.0", map[string]string{
		"go.mod": "module example.org/chart\n", "install/chart/Chart.yaml": "name: chart\n",
		"install/chart/templates/z.yaml": "z\n", "install/chart/templates/a.yaml": "a\n", "crds.yaml": "crds\n"})
	m, err := gomod.Download(t.Context(), "example.org/chart@v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDirectoryIsADeterministicTar(t *testing.T) {
	m := download(t)
	data, err := io.ReadAll(m.Open(t.Context(), "install/chart"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	tr := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Mode != 0o644 || h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("header %+v", h)
		}
	}
	if want := []string{"chart/Chart.yaml", "chart/templates/a.yaml", "chart/templates/z.yaml"}; !slices.Equal(names, want) {
		t.Errorf("holds %v, want %v", names, want)
	}
	again, err := io.ReadAll(m.Open(t.Context(), "install/chart"))
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("the second tar differs, %v", err)
	}
}

func TestFileIsAsItIs(t *testing.T) {
	data, err := io.ReadAll(download(t).Open(t.Context(), "crds.yaml"))
	if string(data) != "crds\n" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestWhatTheModuleDoesNotHave(t *testing.T) {
	if _, err := io.ReadAll(download(t).Open(t.Context(), "nowhere")); err == nil || !strings.Contains(err.Error(), "the module has no nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownVersion(t *testing.T) {
	gomodtest.NewProxy(t)
	_, err := gomod.Download(t.Context(), "example.org/chart@v9.9.9")
	if err == nil || !strings.Contains(err.Error(), "example.org/chart@v9.9.9") || diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
}

// A module that was changed in the proxy after its hash was seen is refused by
// its hash; one that was changed in the module cache, by the digest of the tar.
func TestHashFollowsTheContent(t *testing.T) {
	first := download(t)
	gomodtest.NewProxy(t).Add(t, "example.org/chart", "v1.2.0", map[string]string{"go.mod": "module example.org/chart\n", "crds.yaml": "evil\n"})
	second, err := gomod.Download(t.Context(), "example.org/chart@v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if first.H1 == second.H1 || !strings.HasPrefix(first.H1, "h1:") {
		t.Errorf("hashes %s and %s", first.H1, second.H1)
	}
}

// The caller's module, GOFLAGS and work file have no say.
func TestCallersModuleHasNoSay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("not a go.mod"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("GOWORK", filepath.Join(dir, "nowhere"))
	download(t)
}
