package cas_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
)

func TestWithoutStages(t *testing.T) {
	c, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	blob, key := digest.Of([]byte("blob")), digest.Of([]byte("key"))
	if err := c.Put(t.Context(), blob, 4, strings.NewReader("blob")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.BuildStage(t.Context(), "rootfs", key, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	fresh, remove, err := c.WithoutStages()
	if err != nil {
		t.Fatal(err)
	}
	if _, there := fresh.Stage("rootfs", key); there || !fresh.Has(blob) {
		t.Errorf("stage %v, blob %v", there, fresh.Has(blob))
	}
	remove()
	if _, err := os.Stat(fresh.Dir()); err == nil || !c.Has(blob) {
		t.Errorf("left: %v, blob %v", err == nil, c.Has(blob))
	}
}

// What a killed rebuild leaves goes with the next opening, and the inputs stay.
func TestKilledRebuildIsSwept(t *testing.T) {
	dir := t.TempDir()
	c, err := cas.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	blob := digest.Of([]byte("blob"))
	if err := c.Put(t.Context(), blob, 4, strings.NewReader("blob")); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "tmp", "stage-rebuild-1")
	if err := os.MkdirAll(filepath.Join(left, "stage", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "sha256"), filepath.Join(left, "sha256")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	if c, err = cas.Open(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil || !c.Has(blob) {
		t.Errorf("left: %v, blob %v", err == nil, c.Has(blob))
	}
}
