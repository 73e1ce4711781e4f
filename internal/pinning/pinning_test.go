package pinning_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
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
	"github.com/slipway/slipway/internal/imagebuild/fetch/registry/registrytest"
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
	w.cilium(t, "1.20.2")
	flux := map[string]string{"go.mod": "module github.com/fluxcd/flux2/v2\n"}
	install := "resources:\n"
	for _, name := range pin.FluxControllers {
		install += "  - ../bases/" + name + "\n"
		release := "- https://github.com/fluxcd/" + name + "/releases/download/v1.0.0/" + name
		flux["manifests/bases/"+name+"/kustomization.yaml"] = "resources:\n" + release + ".deployment.yaml\n"
		module := "github.com/fluxcd/" + name
		w.proxy.Add(t, module, "v1.0.0", map[string]string{
			"go.mod": "module " + module + "\n", "config/manager/kustomization.yaml": "resources: [pod.yaml]\n",
			"config/manager/pod.yaml": pod(name, "ghcr.io/fluxcd/"+name+":v1.0.0")})
	}
	flux["manifests/install/kustomization.yaml"] = install
	w.proxy.Add(t, "github.com/fluxcd/flux2/v2", "v2.9.5", flux)
	return w
}

func pod(name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: a, image: \"" + image + "\"}]}\n"
}

// chart is a small chart that needs one image.
func chart(version, image string) map[string]string {
	return map[string]string{"Chart.yaml": "apiVersion: v2\nname: cilium\nversion: " + version + "\n",
		"templates/pod.yaml": pod("cilium", image)}
}

func (w *world) cilium(t *testing.T, version string) {
	t.Helper()
	files := map[string]string{"go.mod": "module github.com/cilium/cilium\n"}
	for name, text := range chart(version, "quay.io/cilium/cilium:v"+version) {
		files["install/kubernetes/cilium/"+name] = text
	}
	w.proxy.Add(t, "github.com/cilium/cilium", "v"+version, files)
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
	if !res.Written || res.Failed() != 0 || len(res.Unpinned) != 7 {
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
	w.cilium(t, "1.20.3")
	if res := w.pin(t); res.Failed() != 0 || fmt.Sprint(res.Changes) != "[pinned   cilium-chart 1.20.3 added    quay.io/cilium/cilium:v1.20.3 v1.20.3]" {
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
	if !res.Written || res.Failed() != 0 || len(res.Unpinned) != 8 {
		t.Errorf("got %+v", res)
	}
	lock, err := pinning.Read(w.options.Profile)
	if err != nil || lock.Artifact("k3s").Kind != pin.KindFile || !strings.Contains(lock.Artifact("k3s").Unpinned, "no such file") {
		t.Errorf("got %+v, %v", lock.Artifact("k3s"), err)
	}
}

// archived is a directory of a chart, or any files, as a tar.
func archived(t *testing.T, dir string, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: path.Join(dir, name), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))})
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// In the open the images that charts need are pinned in their registries, but for
// those that an archive of this machine has.
func TestImagesArePinned(t *testing.T) {
	w := newWorld(t)
	s := registrytest.New(t)
	agent, want := s.Add(t, "cilium/cilium", "v1", "base", "agent")
	w.options.Cluster.Sources = cluster.Sources{From: cluster.OriginUpstream, Files: map[string]string{}}
	for name, data := range map[string][]byte{
		"k3s": []byte("elf"), "k3s-images": archived(t, "", map[string]string{"manifest.json": "[]"}),
		"cilium-chart": archived(t, "cilium", chart("1.20.2", agent)), "flux-components": []byte(pod("f", "ghcr.io/fluxcd/f:v1")),
		"images": archived(t, "", map[string]string{"manifest.json": `[{"RepoTags":["ghcr.io/fluxcd/f:v1"]}]`}),
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(w.lock), name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		w.options.Cluster.Sources.Files[name] = name
	}
	res := w.pin(t)
	lock, err := pinning.Read(w.options.Profile)
	if err != nil || res.Failed() != 0 || len(res.Unpinned) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	a := lock.Artifact(agent)
	if a == nil || a.Digest != want || a.Kind != pin.KindImage || a.For != pin.ArtifactCilium || a.Version != "v1" {
		t.Errorf("pinned as %+v, want %s", a, want)
	}
	if lock.Artifact("ghcr.io/fluxcd/f:v1") != nil {
		t.Error("an image that is in the archive is pinned once more")
	}
	before := s.Requests("/manifests/")
	if res := w.pin(t); res.Written || s.Requests("/manifests/") != before {
		t.Errorf("asked again: %+v", res)
	}
	if err := pinning.Check(w.options.Profile, w.options.Cluster); err != nil {
		t.Error(err)
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
