package cas_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/internal/digest"
)

func TestStageIsBuiltOnce(t *testing.T) {
	c, key := open(t), digest.Of([]byte("key"))
	runs := 0
	build := func(dir string) error {
		runs++
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "sub", "f"), []byte("x"), 0o600)
	}
	for range 3 {
		dir, err := c.BuildStage(t.Context(), "rootfs", key, build)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "sub", "f")); string(got) != "x" {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("built %d times", runs)
	}
	if _, ok := c.Stage("rootfs", digest.Of([]byte("other"))); ok {
		t.Error("another key has the same stage")
	}
	if _, ok := c.Stage("squash", key); ok {
		t.Error("another name has the same stage")
	}
	if l := leftovers(t, c); len(l) > 0 {
		t.Errorf("left %v", l)
	}
}

func TestFailedStageLeavesNothing(t *testing.T) {
	c, key, broken := open(t), digest.Of([]byte("key")), errors.New("broken")
	_, err := c.BuildStage(t.Context(), "rootfs", key, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, ok := c.Stage("rootfs", key); ok || len(leftovers(t, c)) > 0 {
		t.Errorf("something was kept: %v", leftovers(t, c))
	}
}

func TestDropStage(t *testing.T) {
	c, key := open(t), digest.Of([]byte("key"))
	if err := c.DropStage("rootfs", key); err != nil {
		t.Errorf("dropping what is not there: %v", err)
	}
	if _, err := c.BuildStage(t.Context(), "rootfs", key, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := c.DropStage("rootfs", key); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Stage("rootfs", key); ok || len(leftovers(t, c)) > 0 {
		t.Errorf("still there, or left %v", leftovers(t, c))
	}
}
