package seed

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/slipway/slipway/internal/hosttool"
)

// The golden files are what cloud-init itself accepts. The schema of the host's
// cloud-init is older than the node's and knows user-data only; the node's own
// reads the same documents at every boot.
func TestCloudInitSchema(t *testing.T) {
	for name := range goldenSeeds(t) {
		for _, doc := range []string{NameUserData, NameVendorData} {
			path := filepath.Join("testdata", name, doc)
			if out, err := schema(t, path); err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
}

func TestCloudInitSchemaCanFail(t *testing.T) {
	if out, err := schema(t, filepath.Join("testdata", "bad-user-data")); err == nil {
		t.Errorf("a list as host name was accepted:\n%s", out)
	}
}

func schema(t *testing.T, path string) ([]byte, error) {
	var out bytes.Buffer
	err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "cloud-init", Args: []string{"schema", "--config-file", path}, Stdout: &out})
	return out.Bytes(), err
}
