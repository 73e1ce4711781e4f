package imagebuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
)

// A first program that is linked to libraries would end in a kernel panic on the node.
func TestNodeInitIsStatic(t *testing.T) {
	err := static("/bin/sh") // every distribution's own is linked to libraries
	if err == nil || !strings.Contains(err.Error(), "/bin/sh is linked to libraries") || diag.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := static(text); err != nil {
		t.Errorf("no program at all: %v", err)
	}
}
