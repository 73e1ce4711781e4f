package ready

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keyDir is where the node's SSH host keys are.
const keyDir = "/etc/ssh"

// hostKeys are the fingerprints of the node's SSH host keys, a line each, as ssh and
// bootstrap trust show them. Whoever stands before the console can compare.
func hostKeys(dir string) string {
	paths, _ := filepath.Glob(filepath.Join(dir, "ssh_host_*_key.pub"))
	var out strings.Builder
	for _, p := range paths {
		data, err := os.ReadFile(p)
		f := strings.Fields(string(data))
		if err != nil || len(f) < 2 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(f[1])
		if err != nil {
			continue
		}
		kind := strings.ToUpper(strings.TrimPrefix(f[0], "ssh-"))
		if strings.HasPrefix(kind, "ECDSA") {
			kind = "ECDSA"
		}
		sum := sha256.Sum256(key)
		fmt.Fprintf(&out, "SSH host key SHA256:%s (%s)\n", base64.RawStdEncoding.EncodeToString(sum[:]), kind)
	}
	return out.String()
}
