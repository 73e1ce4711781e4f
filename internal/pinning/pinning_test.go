package pinning_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/images"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve/apttest"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod/gomodtest"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/pinning"
	"github.com/slipway/slipway/internal/progress"
)

// world is an archive and a module proxy that have what an environment wants,
// and a profile in a directory of its own.
type world struct {
	archive *apttest.Archive
	proxy   *gomodtest.Proxy
	options pinning.Options
	lock    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	k := apttest.NewKey(t, "good")
	w := &world{archive: apttest.New(t, k), proxy: gomodtest.NewProxy(t)}
	t.Setenv("GONOSUMDB", "*")
	cache, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{aptresolve.EnvMirror: w.archive.URL + "/debian"}
	w.options = pinning.Options{
		Profile: filepath.Join(t.TempDir(), "x.yaml"), Cache: cache, Report: progress.Nop{}, Keyring: k.Keyring,
		Getenv: func(name string) string { return env[name] },
		Cluster: &cluster.Cluster{
			Substrate: cluster.SubstrateVM,
			Debian:    cluster.Debian{Suite: "trixie", Components: []string{"main"}},
			Sources:   cluster.Sources{From: cluster.OriginGoModule},
			K3s:       cluster.K3s{Version: "v1.34.4+k3s1"},
			Cilium:    cluster.Cilium{Version: "1.20.2"},
			Flux:      cluster.Flux{Version: "2.9.5"},
		},
	}
	w.lock = pin.Path(w.options.Profile)
	w.packages(t, "1")
	w.proxy.Add(t, "github.com/cilium/cilium", "v1.20.2", map[string]string{"go.mod": "module github.com/cilium/cilium\n", "install/kubernetes/cilium/Chart.yaml": "name: cilium\n"})
	flux := map[string]string{"go.mod": "module github.com/fluxcd/flux2/v2\n"}
	for _, name := range pin.FluxControllers {
		flux["manifests/bases/"+name+"/kustomization.yaml"] = "resources:\n- https://github.com/fluxcd/" + name + "/releases/download/v1.0.0/" + name + ".deployment.yaml\n"
		module := "github.com/fluxcd/" + name
		w.proxy.Add(t, module, "v1.0.0", map[string]string{"go.mod": "module " + module + "\n", "config/manager/deployment.yaml": "x\n"})
	}
	w.proxy.Add(t, "github.com/fluxcd/flux2/v2", "v2.9.5", flux)
	return w
}

// packages publishes everything that a node wants, apt in the given version.
func (w *world) packages(t *testing.T, apt string) {
	t.Helper()
	names, err := images.Packages("vm")
	if err != nil {
		t.Fatal(err)
	}
	index := apttest.Stanza("dpkg", "1", "Essential: yes\n") + apttest.Stanza("apt", apt, "") + apttest.Stanza("ipxe", "1", "") + apttest.Stanza("vim-tiny", "1", "") +
		apttest.Stanza("linux-image-cloud-amd64", "1", "Depends: linux-image-6.1-cloud-amd64\n") + apttest.Stanza("linux-image-6.1-cloud-amd64", "1", "")
	for _, name := range names {
		index += apttest.Stanza(name, "1", "")
	}
	w.archive.Suite(t, "debian", "trixie", index, time.Hour)
	w.archive.Suite(t, "debian", "trixie-updates", "", time.Hour)
	w.archive.Suite(t, "debian-security", "trixie-security", "", time.Hour)
}

func (w *world) pin(t *testing.T) pinning.Result {
	t.Helper()
	res, err := pinning.Pin(t.Context(), w.options)
	if err != nil {
		t.Fatalf("%v (hint: %s)", err, diag.HintOf(err))
	}
	return res
}

func (w *world) read(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPinWritesTheLockAndThenLeavesIt(t *testing.T) {
	w := newWorld(t)
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err == nil || !strings.Contains(diag.HintOf(err), "imagebuild pin") {
		t.Errorf("before there is a lock: %v", err)
	}
	res := w.pin(t)
	if !res.Written || res.Failed() != 0 || len(res.Unpinned) != 2 {
		t.Errorf("got %+v", res)
	}
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err != nil {
		t.Error(err)
	}
	first := w.read(t)
	for _, leak := range []string{"127.0.0.1", "file://", filepath.Dir(w.lock)} {
		if bytes.Contains(first, []byte(leak)) {
			t.Errorf("the lock holds %q", leak)
		}
	}
	w.packages(t, "1") // the same packages behind a newer index
	if res := w.pin(t); res.Written || len(res.Changes) != 0 || !bytes.Equal(w.read(t), first) {
		t.Errorf("written again: %+v", res)
	}
}

func TestPinSaysWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.pin(t)
	w.packages(t, "2")
	w.options.Cluster.System.Packages = []string{"vim-tiny"}
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err == nil || !strings.Contains(err.Error(), "vim-tiny") {
		t.Errorf("a lock without vim-tiny: %v", err)
	}
	var got []string
	for _, c := range w.pin(t).Changes {
		got = append(got, c.String())
	}
	if want := []string{"raised   apt 1 -> 2", "added    vim-tiny 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPinnedArtifactsStayThoughTheirSourceIsGone(t *testing.T) {
	w := newWorld(t)
	w.pin(t)
	gomodtest.NewProxy(t) // empty
	t.Setenv("GONOSUMDB", "*")
	w.packages(t, "2")
	if res := w.pin(t); res.Failed() != 0 || len(res.Changes) != 1 {
		t.Errorf("got %+v", res)
	}
}

func TestWhatCannotBeReachedIsWrittenAsUnpinned(t *testing.T) {
	w := newWorld(t)
	w.options.Cluster.Cilium.Version = "1.20.3"
	res := w.pin(t)
	if !res.Written || res.Failed() != 1 {
		t.Fatalf("got %+v", res)
	}
	lock, err := pinning.Read(w.options.Profile)
	if err != nil {
		t.Fatal(err)
	}
	cilium := lock.Artifact(pin.ArtifactCilium)
	if cilium.Version != "1.20.3" || cilium.Unpinned == "" || !cilium.Digest.IsZero() || lock.Artifact(pin.ArtifactFlux).Unpinned != "" {
		t.Errorf("the lock has %+v", cilium)
	}
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err != nil {
		t.Errorf("an unpinned input stops what does not need it: %v", err)
	}
	// Once it can be reached, it is pinned.
	w.proxy.Add(t, "github.com/cilium/cilium", "v1.20.3", map[string]string{"go.mod": "module github.com/cilium/cilium\n", "install/kubernetes/cilium/Chart.yaml": "name: cilium\n"})
	if res := w.pin(t); res.Failed() != 0 || fmt.Sprint(res.Changes) != "[pinned   cilium-chart 1.20.3]" {
		t.Errorf("got %+v", res)
	}
}

// What an input asks for is pinned with it, and goes when it does.
func TestFollowersArePinned(t *testing.T) {
	w := newWorld(t)
	w.pin(t)
	lock, err := pinning.Read(w.options.Profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pin.FluxControllers {
		if a := lock.Artifact("flux-" + name); a == nil || a.Unpinned != "" || a.For != pin.ArtifactFlux || a.Version != "1.0.0" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	w.options.Cluster.Sources.From = cluster.OriginUpstream
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err == nil || strings.Contains(err.Error(), "flux-source-controller") {
		t.Errorf("what follows is told apart from what it follows: %v", err)
	}
}

// A file that is not there is written as that, and no failure: it may be one that
// only some machines have.
func TestFilesThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	w.options.Cluster.Sources.Files = map[string]string{"k3s": "k3s-binary", "images": "images.tar"}
	res := w.pin(t)
	if !res.Written || res.Failed() != 0 || len(res.Unpinned) != 3 {
		t.Errorf("got %+v", res)
	}
	lock, err := pinning.Read(w.options.Profile)
	if err != nil || lock.Artifact("k3s").Kind != pin.KindFile || !strings.Contains(lock.Artifact("k3s").Unpinned, "no such file") {
		t.Errorf("got %+v, %v", lock.Artifact("k3s"), err)
	}
}

func TestFilesAreReadAgain(t *testing.T) {
	w := newWorld(t)
	name := filepath.Join(filepath.Dir(w.lock), "k3s-binary")
	w.options.Cluster.Sources.Files = map[string]string{"k3s": "k3s-binary"}
	for i, content := range []string{"one", "two"} {
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if res := w.pin(t); !res.Written {
			t.Errorf("run %d: not written: %+v", i, res)
		}
	}
	lock, err := pinning.Read(w.options.Profile)
	if err != nil || lock.Artifact("k3s").Size != 3 || lock.Artifact("k3s").Unpinned != "" {
		t.Errorf("got %+v, %v", lock.Artifact("k3s"), err)
	}
	w.options.Cluster.Sources.Files = map[string]string{"k4s": "x"}
	if _, err := pinning.Pin(t.Context(), w.options); err == nil || !strings.Contains(err.Error(), "k4s") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestALockThatCannotBeReadIsReplaced(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.lock, []byte("<<<<<<< ours\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := w.pin(t); !res.Written || !strings.Contains(res.Replaced, "x.lock:1") {
		t.Errorf("got %+v", res)
	}
	if _, err := pinning.Read(w.options.Profile); err != nil {
		t.Error(err)
	}
}

func TestAFailedPinLeavesTheLock(t *testing.T) {
	w := newWorld(t)
	w.pin(t)
	before := w.read(t)
	w.options.Cluster.System.Packages = []string{"vim-tinny"}
	if _, err := pinning.Pin(t.Context(), w.options); err == nil || !strings.Contains(diag.HintOf(err), "vim-tiny") {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
	if !bytes.Equal(w.read(t), before) {
		t.Error("the lock was changed")
	}
	if left, _ := filepath.Glob(filepath.Dir(w.lock) + "/*"); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}
