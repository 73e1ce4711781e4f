package ociarchive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/ociarchive"
)

// store is content by digest.
type store map[digest.Digest][]byte

func (s store) add(text string) (digest.Digest, int64) {
	d := digest.Of([]byte(text))
	s[d] = []byte(text)
	return d, int64(len(text))
}

func (s store) open(d digest.Digest) (io.ReadCloser, error) {
	data, ok := s[d]
	if !ok {
		return nil, errors.New("not there")
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (s store) image(name, manifest string, layers ...string) ociarchive.Image {
	i := ociarchive.Image{Name: name, MediaType: "application/vnd.oci.image.manifest.v1+json", Blobs: map[digest.Digest]int64{}}
	i.Manifest, i.Size = s.add(manifest)
	for _, l := range layers {
		d, n := s.add(l)
		i.Blobs[d] = n
	}
	return i
}

// One copy of every blob, whoever has it, and the same bytes in whatever order the
// images come.
func TestWrite(t *testing.T) {
	s := store{}
	images := []ociarchive.Image{s.image("quay.io/x/two:v1", "m2", "base", "second"), s.image("quay.io/x/one:v1", "m1", "base", "first")}
	var out, again bytes.Buffer
	if err := ociarchive.Write(&out, images, s.open); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(images)
	if err := ociarchive.Write(&again, images, s.open); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("another order gives other bytes, %v", err)
	}
	path := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := bundle.Held(t.Context(), path)
	if err != nil || !slices.Equal(got, []string{"quay.io/x/one:v1", "quay.io/x/two:v1"}) {
		t.Errorf("it holds %q, %v", got, err)
	}
	seen := map[string]int{}
	tr := tar.NewReader(&out)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		seen[h.Name]++
		if hex := filepath.Base(h.Name); filepath.Dir(h.Name) == "blobs/sha256" && digest.Of(data).Hex() != hex {
			t.Errorf("%s holds %q", h.Name, data)
		}
	}
	if len(seen) != 7 || seen["blobs/sha256/"+digest.Of([]byte("base")).Hex()] != 1 || seen["oci-layout"] != 1 {
		t.Errorf("entries %v", seen)
	}
}

func TestWriteWithoutABlob(t *testing.T) {
	s := store{}
	i := s.image("quay.io/x/one:v1", "m", "layer")
	delete(s, digest.Of([]byte("layer")))
	if err := ociarchive.Write(io.Discard, []ociarchive.Image{i}, s.open); err == nil {
		t.Error("no error")
	}
}
