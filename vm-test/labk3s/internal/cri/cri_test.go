package cri

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestTarball(t *testing.T) {
	for name, want := range map[string]bool{
		"a.tar": true, "a.tar.gz": true, "a.tgz": true, "a.tar.zst": true, "a.tzst": true,
		"a.txt": false, "tar": false, "a.tar.xz": false, ".a.tar.part": false,
	} {
		if got := tarball(name); got != want {
			t.Errorf("%s is a tarball: %v", name, got)
		}
	}
}

func TestDecompress(t *testing.T) {
	text := []byte("a tarball")
	var zipped bytes.Buffer
	g := gzip.NewWriter(&zipped)
	g.Write(text)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.tar": text, "a.tar.gz": zipped.Bytes(), "a.tar.zst": z.EncodeAll(text, nil)} {
		r, err := decompress(name, bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
		r.Close()
	}
}

// What cannot be imported is tried again; what was imported is not, until it changes.
// There is no containerd here, so whatever is tried fails.
func TestImportRemembers(t *testing.T) {
	c := Containerd{Dir: t.TempDir()}
	images := t.TempDir()
	if err := os.MkdirAll(c.root(), 0o700); err != nil {
		t.Fatal(err)
	}
	known, broken := filepath.Join(images, "known.tar"), filepath.Join(images, "broken.tar")
	for _, name := range []string{known, broken} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := markOf(known)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.remember(map[string]bool{mark: true, "00 gone.tar": true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Import(t.Context(), images); err != nil {
		t.Fatal(err)
	}
	if got := c.imported(); len(got) != 1 || !got[mark] {
		t.Errorf("remembered are %v", got)
	}
	if err := os.WriteFile(known, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Import(t.Context(), images); err != nil {
		t.Fatal(err)
	}
	if got := c.imported(); len(got) != 0 {
		t.Errorf("a changed tarball is taken for imported: %v", got)
	}
	if err := c.Import(t.Context(), filepath.Join(images, "none")); err != nil {
		t.Errorf("without a directory: %v", err)
	}
}
