package isoimage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/hosttool"
)

func spec(t *testing.T) Spec {
	t.Helper()
	tree, err := fstree.New(
		fstree.File("user-data", 0o644, []byte("#cloud-config\n")),
		fstree.File("network-config", 0o644, []byte("network: {}\n")),
		fstree.File("dir/run", 0o755, []byte("#!/bin/sh\n")),
		fstree.Symlink("link", "user-data"),
	)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Label: "CIDATA", Tree: tree, Epoch: 1700000000}
}

func made(t *testing.T, path string, s Spec) []byte {
	t.Helper()
	if err := Create(t.Context(), path, s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "seed.iso")
	data := made(t, image, spec(t))
	// ECMA-119: the primary volume descriptor is sector 16, its label at byte 40.
	if got := strings.TrimSpace(string(data[16*2048+40 : 16*2048+72])); got != "CIDATA" {
		t.Errorf("label is %q", got)
	}
	out := filepath.Join(dir, "out")
	err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "xorriso", Args: []string{"-osirrox", "on", "-indev", image, "-extract", "/", out}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"user-data": "#cloud-config\n", "dir/run": "#!/bin/sh\n", "link": "#cloud-config\n"} {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v)", name, got, err)
		}
	}
	if st, err := os.Stat(filepath.Join(out, "dir/run")); err != nil || st.ModTime().Unix() != 1700000000 {
		t.Errorf("time is not the epoch: %v, %v", st, err)
	}
}

// The wait makes two runs fall into different seconds, the unit of ISO 9660's
// times, so that a time that comes from the clock shows.
func TestSameBytes(t *testing.T) {
	want := made(t, filepath.Join(t.TempDir(), "a.iso"), spec(t))
	time.Sleep(1100 * time.Millisecond)
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("TMPDIR", t.TempDir())
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	if got := made(t, filepath.Join(t.TempDir(), "other name.iso"), spec(t)); !bytes.Equal(got, want) {
		t.Error("the same spec gave other bytes")
	}
}

func TestRefusesAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, try := range map[string]func(string) error{
		"label":   func(p string) error { s := spec(t); s.Label = "small"; return Create(t.Context(), p, s) },
		"time":    func(p string) error { s := spec(t); s.Epoch = 0; return Create(t.Context(), p, s) },
		"context": func(p string) error { return Create(ctx, p, spec(t)) },
	} {
		path := filepath.Join(t.TempDir(), "a.iso")
		if err := try(path); err == nil || !strings.Contains(err.Error(), name) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
			t.Errorf("%s: %d files left behind", name, len(left))
		}
	}
}

func TestKeepsOldOnFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.iso")
	want := made(t, path, spec(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Create(ctx, path, spec(t)) == nil {
		t.Fatal("a cancelled run succeeded")
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the old image is gone: %v", err)
	}
}
