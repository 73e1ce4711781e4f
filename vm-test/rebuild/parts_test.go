package rebuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
)

const profile = "../../profiles/lab.yaml"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// definitions are those of Longhorn, as the lab's lock names them, and Cilium's of a
// node, from the module that we are built with.
func definitions(t testing.TB) []map[string]any {
	t.Helper()
	lock, err := pinning.Read(profile)
	must(t, err)
	dir, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	cache, err := cas.Open(dir)
	must(t, err)
	_, err = fetch.Fetcher{Cache: cache, Profile: profile}.Artifacts(t.Context(), lock, pin.ArtifactLonghornCR)
	must(t, err)
	made := t.TempDir()
	must(t, bundle.Make(t.Context(), bundle.Inputs{pin.ArtifactLonghornCR: cache.Path(lock.Artifact(pin.ArtifactLonghornCR).Digest)}, made))
	plain, err := os.ReadFile(filepath.Join(made, bundle.LonghornCR))
	must(t, err)
	out := decode(t, "longhorn", plain)
	if len(out) < 20 {
		t.Fatalf("only %d definitions of Longhorn", len(out))
	}
	where, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cilium/cilium").Output()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(where)), "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnodes.yaml"))
	must(t, err)
	return append(out, decode(t, "cilium", text)...)
}

func decode(t testing.TB, name string, data []byte) []map[string]any {
	t.Helper()
	objects, err := kube.Decode(name, data)
	must(t, err)
	return objects
}
