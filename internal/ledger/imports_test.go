package ledger_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The ledger needs C libraries. What runs in an initramfs or on any build host is
// built without them and must not come to need them.
func TestKeptOutOfPureGoPrograms(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/slipway/slipway/cmd/imagebuild", "github.com/slipway/slipway/cmd/nodeinit").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, "github.com/slipway/slipway/internal/ledger") || strings.HasPrefix(p, "github.com/canonical/") {
			t.Errorf("imagebuild or nodeinit depend on %s", p)
		}
	}
	if !strings.Contains(string(out), "slipway/internal/cluster") {
		t.Error("nothing was listed")
	}
}
