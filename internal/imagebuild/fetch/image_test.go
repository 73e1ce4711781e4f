package fetch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/fetch/registry/registrytest"
	"github.com/slipway/slipway/internal/pin"
)

func image(ref string) pin.Artifact {
	return pin.Artifact{Name: ref, Version: "v1", Kind: pin.KindImage, Source: ref}
}

// A tag is fixed as the manifest for our platform; its layers come when they are
// fetched, each once, also when another image has them as well.
func TestImages(t *testing.T) {
	s := registrytest.New(t)
	one, want := s.Add(t, "x/one", "v1", "base layer", "first")
	two, _ := s.Add(t, "x/two", "v1", "base layer", "second")
	lock := &pin.Lock{}
	for _, ref := range []string{one, two} {
		a, err := (fetch.Fetcher{Cache: openCache(t)}).Pin(t.Context(), image(ref))
		if err != nil {
			t.Fatal(err)
		}
		lock.Artifacts = append(lock.Artifacts, a)
	}
	if a := lock.Artifacts[0]; a.Digest != want || a.Size < 300 {
		t.Errorf("pinned as %+v, want %s", a, want)
	}
	if n := s.Requests("/blobs/"); n != 0 {
		t.Errorf("pinning fetched %d blobs", n)
	}
	f := fetch.Fetcher{Cache: openCache(t)}
	got, err := f.Artifacts(t.Context(), lock, one, two)
	if err != nil || got.Fetched != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	base := digest.Of([]byte("base layer"))
	if !f.Cache.Has(base) || s.Requests(base.String()) != 1 {
		t.Errorf("the layer of both came %d times", s.Requests(base.String()))
	}
	if got, err := f.Artifacts(t.Context(), lock, one, two); err != nil || got.Cached != 2 || got.Fetched != 0 {
		t.Errorf("again: %+v, %v", got, err)
	}
	// A tag that moves on the way moves nothing: the manifest is asked for by digest.
	s.Add(t, "x/one", "v1", "evil")
	if _, err := (fetch.Fetcher{Cache: openCache(t)}).Artifacts(t.Context(), lock, one); err != nil {
		t.Error(err)
	}
}

func TestImagesThatAreNotWhatWasPinned(t *testing.T) {
	s := registrytest.New(t)
	ref, d := s.Add(t, "x/one", "v1", "layer")
	a, err := (fetch.Fetcher{Cache: openCache(t)}).Pin(t.Context(), image(ref))
	if err != nil {
		t.Fatal(err)
	}
	lock := &pin.Lock{Artifacts: []pin.Artifact{a}}
	s.Spoil(digest.Of([]byte("layer")), "LAYER")
	c := openCache(t)
	if _, err := (fetch.Fetcher{Cache: c}).Artifacts(t.Context(), lock, ref); !errors.Is(err, digest.ErrMismatch) || c.Has(digest.Of([]byte("LAYER"))) {
		t.Errorf("another layer: %v", err)
	}
	s.Spoil(d, "{}")
	if _, err := (fetch.Fetcher{Cache: openCache(t)}).Artifacts(t.Context(), lock, ref); !errors.Is(err, digest.ErrMismatch) {
		t.Errorf("another manifest: %v", err)
	}
}

func TestImagesThatCannotBePinned(t *testing.T) {
	s := registrytest.New(t)
	ref, _ := s.Add(t, "x/one", "v1", "layer")
	for source, want := range map[string]string{
		strings.Replace(ref, ":v1", ":v2", 1): "404", "busybox": "not the full name",
	} {
		if _, err := (fetch.Fetcher{Cache: openCache(t)}).Pin(t.Context(), image(source)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", source, err)
		}
	}
	s.Login = true
	if _, err := (fetch.Fetcher{Cache: openCache(t)}).Pin(t.Context(), image(ref)); err == nil || !strings.Contains(err.Error(), "wants a login (Basic)") {
		t.Errorf("behind a login: %v", err)
	}
}
