package imagebuild

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/fetch/registry/registrytest"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/plan"
	"github.com/slipway/slipway/internal/progress"
)

// saved is an archive of images as docker saves it.
func saved(t *testing.T, tags string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := `[{"RepoTags":[` + tags + `]}]`
	err := w.WriteHeader(&tar.Header{Name: "manifest.json", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// payloadOf is a builder whose payload has the given inputs, with what is in them.
func payloadOf(t *testing.T, inputs map[string][]byte) *builder {
	t.Helper()
	cache, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{Resolved: &Resolved{}, Options: Options{Cache: cache}}
	b.paths.payload = t.TempDir()
	for name, data := range inputs {
		d, n, err := cache.Add(t.Context(), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		b.Plan.Payload.Inputs = append(b.Plan.Payload.Inputs, plan.Input{Name: name, Kind: string(pin.KindFile), Size: n, Digest: d})
	}
	return b
}

// What is in a slot, and under which names: k3s looks for kubectl beside itself.
func TestPayloadInSlot(t *testing.T) {
	b := payloadOf(t, map[string][]byte{pin.ArtifactK3s: []byte("elf"), pin.ArtifactImages: saved(t, `"x/y:1"`), pin.ArtifactCilium: []byte("chart")})
	for _, name := range []string{bundle.Cilium, bundle.Flux} {
		if err := os.WriteFile(filepath.Join(b.paths.payload, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layers, err := b.payloadLayers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range layers {
		tr := tar.NewReader(l)
		for {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag != tar.TypeDir {
				got = append(got, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname)
			}
		}
		l.Close()
	}
	slices.Sort(got)
	want := []string{
		"-rw-r--r-- usr/share/slipway/charts/cilium.tgz ", "-rw-r--r-- usr/share/slipway/images/images.tar ", "-rw-r--r-- usr/share/slipway/manifests/flux.yaml ",
		"-rwxr-xr-x usr/bin/k3s ", "Lrwxrwxrwx usr/bin/crictl k3s", "Lrwxrwxrwx usr/bin/ctr k3s", "Lrwxrwxrwx usr/bin/kubectl k3s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// Without k3s there are no links that lead nowhere.
func TestSlotWithoutK3s(t *testing.T) {
	layers, err := payloadOf(t, nil).payloadLayers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	if _, err := tar.NewReader(layers[0]).Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is something in it: %v", err)
	}
}

func TestHeldImages(t *testing.T) {
	b := payloadOf(t, map[string][]byte{pin.ArtifactK3sImages: saved(t, `"rancher/mirrored-pause:3.6"`), pin.ArtifactImages: saved(t, `"quay.io/x/y:1"`)})
	b.Plan.Payload.Inputs = append(b.Plan.Payload.Inputs, plan.Input{Name: "quay.io/a/b:2", Kind: string(pin.KindImage), Digest: digest.Of([]byte("m"))})
	got, err := b.heldImages(t.Context())
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"docker.io/rancher/mirrored-pause:3.6", "quay.io/a/b:2", "quay.io/x/y:1"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// An image that no input has is an error that names it; one that the lock calls
// unpinned has been said, and so has every image when their archive is not there.
func TestLostImages(t *testing.T) {
	if out, err := lost(nil, nil, "x"); err != nil || out != nil {
		t.Error(out, err)
	}
	_, err := lost([]string{"quay.io/a/b:1", "quay.io/c/d:2"}, []plan.Absent{{Name: "quay.io/c/d:2"}, {Name: "k3s"}}, "run imagebuild pin")
	if err == nil || !strings.Contains(err.Error(), "quay.io/a/b:1") || strings.Contains(err.Error(), "quay.io/c/d:2") || diag.HintOf(err) != "run imagebuild pin" {
		t.Errorf("got %v", err)
	}
	if out, err := lost([]string{"quay.io/c/d:2"}, []plan.Absent{{Name: "quay.io/c/d:2"}}, "x"); err != nil || len(out) != 0 {
		t.Errorf("an unpinned image is said once: %v, %v", out, err)
	}
	if out, err := lost([]string{"quay.io/a/b:1"}, []plan.Absent{{Name: pin.ArtifactImages}}, "x"); err != nil || len(out) != 1 {
		t.Errorf("without the archive of all images: %v, %v", out, err)
	}
}

// Images that are pinned one by one lie in one archive, each blob once, and are found
// in it again.
func TestImagesOfRegistries(t *testing.T) {
	s := registrytest.New(t)
	one, _ := s.Add(t, "x/one", "v1", "base layer", "first")
	two, _ := s.Add(t, "x/two", "v1", "base layer", "second")
	b := payloadOf(t, nil)
	b.Lock = &pin.Lock{}
	f := fetch.Fetcher{Cache: b.Cache}
	for _, ref := range []string{one, two} {
		a, err := f.Pin(t.Context(), pin.Artifact{Name: ref, Version: "v1", Kind: pin.KindImage, Source: ref})
		if err != nil {
			t.Fatal(err)
		}
		b.Lock.Artifacts = append(b.Lock.Artifacts, a)
		b.Plan.Payload.Inputs = append(b.Plan.Payload.Inputs, plan.Input{Name: ref, Kind: string(a.Kind), Size: a.Size, Digest: a.Digest})
	}
	if _, err := f.Artifacts(t.Context(), b.Lock, one, two); err != nil {
		t.Fatal(err)
	}
	b.Progress = progress.Nop{}
	if err := b.makeImages(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := bundle.Held(t.Context(), b.paths.images)
	if err != nil || !slices.Equal(got, []string{one, two}) {
		t.Errorf("the archive holds %q, %v", got, err)
	}
	data, err := os.ReadFile(b.paths.images)
	if err != nil || bytes.Count(data, []byte("base layer")) != 1 {
		t.Errorf("the layer of both is in it %d times, %v", bytes.Count(data, []byte("base layer")), err)
	}
}
