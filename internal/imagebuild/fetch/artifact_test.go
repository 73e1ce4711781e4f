package fetch_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod/gomodtest"
	"github.com/slipway/slipway/internal/pin"
)

// pinned pins an artifact into one cache and returns the lock for another.
func pinned(t *testing.T, f fetch.Fetcher, a pin.Artifact) *pin.Lock {
	t.Helper()
	f.Cache = openCache(t)
	got, err := f.Pin(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Cache.Has(got.Digest) || got.Size == 0 {
		t.Errorf("pinned as %+v, which the cache does not have", got)
	}
	return &pin.Lock{Artifacts: []pin.Artifact{got}}
}

func TestURLArtifact(t *testing.T) {
	files := map[string][]byte{"k3s": content("k3s", 200_000)}
	a, c := newArchive(t, files), openCache(t)
	a.fault = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		switch n {
		case 1:
			http.Error(w, "busy", http.StatusTooManyRequests)
		case 2:
			cut(w, files["k3s"], 100_000)
		}
		return n < 3
	}
	f := a.fetcher(c)
	lock := pinned(t, f, pin.Artifact{Name: "k3s", Version: "v1", Kind: pin.KindURL, Source: a.URL + "/debian/k3s"})
	if got := lock.Artifacts[0]; got.Digest != digest.Of(files["k3s"]) || got.Size != 200_000 {
		t.Errorf("pinned as %+v", got)
	}
	got, err := f.Artifacts(t.Context(), lock, "k3s")
	if want := (fetch.Summary{Fetched: 1, Bytes: 200_000}); got != want || err != nil || !c.Has(lock.Artifacts[0].Digest) {
		t.Errorf("fetched %+v, %v", got, err)
	}
	if got, err := f.Artifacts(t.Context(), lock, "k3s"); got.Cached != 1 || err != nil {
		t.Errorf("second time: %+v, %v", got, err)
	}
}

func TestURLArtifactThatIsGone(t *testing.T) {
	a := newArchive(t, nil)
	f := a.fetcher(openCache(t))
	art := pin.Artifact{Name: "k3s", Version: "v1", Kind: pin.KindURL, Source: a.URL + "/nowhere", Digest: digest.Of(nil), Size: 3}
	_, err := f.Artifacts(t.Context(), &pin.Lock{Artifacts: []pin.Artifact{art}}, "k3s")
	if !errors.Is(err, fetch.ErrGone) || !strings.Contains(err.Error(), "k3s v1") || diag.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if _, err := f.Pin(t.Context(), art); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("pinned what is not there: %v", err)
	}
}

func TestFileArtifact(t *testing.T) {
	c := openCache(t)
	f := fetch.Fetcher{Cache: c, Dir: t.TempDir(), Profile: "x.yaml"}
	name := filepath.Join(f.Dir, "tool")
	if err := os.WriteFile(name, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	lock := pinned(t, f, pin.Artifact{Name: "tool", Version: "1", Kind: pin.KindFile, Source: "tool"})
	if err := os.WriteFile(name, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := f.Artifacts(t.Context(), lock, "tool")
	if !errors.Is(err, digest.ErrMismatch) || !strings.Contains(diag.HintOf(err), "imagebuild pin -p x.yaml") {
		t.Errorf("changed file: got %v", err)
	}
	if err := os.WriteFile(name, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Artifacts(t.Context(), lock, "tool"); err != nil || !c.Has(digest.Of([]byte("one"))) {
		t.Errorf("got %v", err)
	}
}

func TestUnpinnedArtifactIsRefusedWhereItIsUsed(t *testing.T) {
	f := fetch.Fetcher{Cache: openCache(t), Profile: "x.yaml"}
	lock := &pin.Lock{Artifacts: []pin.Artifact{{Name: "k3s", Version: "v1", Kind: pin.KindURL, Unpinned: "no network that day"}}}
	_, err := f.Artifacts(t.Context(), lock, "k3s")
	if err == nil || !strings.Contains(err.Error(), "no network that day") || !strings.Contains(diag.HintOf(err), "imagebuild pin -p x.yaml") {
		t.Errorf("got %v", err)
	}
	if _, err := f.Artifacts(t.Context(), lock, "other"); err == nil {
		t.Error("fetched what the lock does not have")
	}
}

func TestModuleArtifact(t *testing.T) {
	proxy := gomodtest.NewProxy(t)
	proxy.Add(t, "example.org/chart", "v1.2.0", map[string]string{
		"go.mod": "module example.org/chart\n", "install/chart/Chart.yaml": "name: chart\n", "install/chart/templates/a.yaml": "a\n", "other/b": "b\n"})
	c := openCache(t)
	f := fetch.Fetcher{Cache: c, Profile: "x.yaml"}
	lock := pinned(t, f, pin.Artifact{Name: "chart", Version: "1.2.0", Kind: pin.KindGoModule, Source: "example.org/chart@v1.2.0", Subdir: "install/chart"})
	if _, err := f.Artifacts(t.Context(), lock, "chart"); err != nil || !c.Has(lock.Artifacts[0].Digest) {
		t.Errorf("got %v", err)
	}
	other := openCache(t)
	f.Cache = other
	lock.Artifacts[0].H1 = "h1:AAAAEGIcXc+gqCLYG/l7VCFJ8GHyb4HUrwbZOpkX5dL8="
	if _, err := f.Artifacts(t.Context(), lock, "chart"); !errors.Is(err, digest.ErrMismatch) || diag.HintOf(err) == "" || other.Has(lock.Artifacts[0].Digest) {
		t.Errorf("another module: got %v", err)
	}
}
