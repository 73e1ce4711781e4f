package cri

import (
	"bytes"
	"compress/gzip"
	"io"
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
