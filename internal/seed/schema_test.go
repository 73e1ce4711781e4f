package seed

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

// The golden files are what cloud-init itself accepts. It is not among the tools
// that a build host needs (installed, it would run at the host's own boot), so
// this test is one for hosts that have it, or for a package that is unpacked
// somewhere: SLIPWAY_CLOUD_INIT names the directory that holds cloudinit/. The
// boot test has the node's own cloud-init judge the lab's seed in any case.
func TestCloudInitSchema(t *testing.T) {
	if out, err := schema(t, "cloud-config", "bad-user-data"); errors.Is(err, hosttool.ErrMissing) {
		t.Skip("this host has no cloud-init; the boot test has the node's")
	} else if err == nil {
		t.Errorf("a list as host name was accepted:\n%s", out)
	}
	for name := range goldenSeeds(t) {
		judge(t, "cloud-config", filepath.Join(name, NameUserData))
		if os.Getenv("SLIPWAY_CLOUD_INIT") != "" { // Debian 12's has no schema for it
			judge(t, "network-config", filepath.Join(name, NameNetworkConfig))
		}
	}
	judge(t, "cloud-config", filepath.Join("lab-n1", NameVendorData))
}

func judge(t *testing.T, kind, doc string) {
	t.Helper()
	if out, err := schema(t, kind, doc); err != nil {
		t.Errorf("%s: %v\n%s", doc, err, out)
	}
}

func schema(t *testing.T, kind, doc string) ([]byte, error) {
	var out bytes.Buffer
	cmd := hosttool.Cmd{Name: "cloud-init", Stdout: &out, Args: []string{"schema", "--config-file", filepath.Join("testdata", doc)}}
	if dir := os.Getenv("SLIPWAY_CLOUD_INIT"); dir != "" {
		cmd.Name, cmd.Env = "python3", []string{"PYTHONPATH=" + dir}
		cmd.Args = append([]string{"-m", "cloudinit.cmd.main"}, append(cmd.Args, "--schema-type", kind)...)
	}
	err := hosttool.Run(t.Context(), cmd)
	return out.Bytes(), err
}
