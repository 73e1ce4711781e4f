package ready

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The fingerprints are those that ssh-keygen shows.
func TestHostKeys(t *testing.T) {
	dir := t.TempDir()
	if got := hostKeys(dir); got != "" {
		t.Errorf("no keys: %q", got)
	}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		path := filepath.Join(dir, "ssh_host_"+kind+"_key")
		if out, err := exec.Command("ssh-keygen", "-q", "-N", "", "-t", kind, "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := exec.Command("ssh-keygen", "-l", "-f", path+".pub").CombinedOutput()
		f := strings.Fields(string(out)) // bits, fingerprint, comment, (KIND)
		if err != nil || len(f) < 4 {
			t.Fatalf("%v: %s", err, out)
		}
		if want := "SSH host key " + f[1] + " " + f[len(f)-1] + "\n"; !strings.Contains(hostKeys(dir), want) {
			t.Errorf("%q is not in\n%s", want, hostKeys(dir))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ssh_host_x_key.pub"), []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(hostKeys(dir), "\n"); n != 3 {
		t.Errorf("%d lines", n)
	}
}
