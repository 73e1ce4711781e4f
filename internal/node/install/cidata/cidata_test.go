package cidata

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// write makes the image a file, for readers that know nothing of this package.
func write(t *testing.T, docs map[string][]byte, size int64, sector int) string {
	t.Helper()
	image, err := Image(docs, size, sector, 0x1234abcd)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cidata.img")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func documents() map[string][]byte {
	return map[string][]byte{
		"meta-data":      []byte("instance-id: n1-abc\n"),
		"network-config": bytes.Repeat([]byte("network\n"), 8000),
		"user-data":      []byte("#cloud-config\n"),
		"vendor-data":    {},
		"a-name-that-takes-three.directory-entries": []byte("x"),
		"thirteen-char": bytes.Repeat([]byte{0}, 2048),
	}
}

func TestForeignReaders(t *testing.T) {
	for _, shape := range []struct {
		size   int64
		sector int
	}{{16 << 20, 512}, {17<<20 + 512, 512}, {64 << 20, 512}, {64 << 20, 4096}, {3 << 20, 512}} {
		path := write(t, documents(), shape.size, shape.sector)
		if out := tool(t, "fsck.vfat", "-nv", path); !strings.Contains(out, "16 bits per entry") && !strings.Contains(out, "FAT16") && !strings.Contains(out, "2 FATs, 16 bit") {
			t.Errorf("%+v: fsck.vfat sees something else:\n%s", shape, out)
		}
		if out := tool(t, "blkid", "-p", "-o", "export", path); !strings.Contains(out, "LABEL=CIDATA\n") || !strings.Contains(out, "UUID=1234-ABCD") {
			t.Errorf("%+v: blkid: %s", shape, out)
		}
		for name, want := range documents() {
			if got := tool(t, "mtype", "-i", path, "::"+name); got != string(want) {
				t.Errorf("%+v: %s has %d bytes, want %d", shape, name, len(got), len(want))
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	one := func(name string, n int) map[string][]byte { return map[string][]byte{name: make([]byte, n)} }
	many := map[string][]byte{}
	for i := range maxFiles + 1 {
		many[strings.Repeat("a", i+1)] = nil
	}
	for name, tt := range map[string]struct {
		docs map[string][]byte
		size int64
	}{
		"too large":      {one("user-data", 17<<20), 16 << 20},
		"too small":      {one("user-data", 1), 1 << 20},
		"path":           {one("../x", 1), 16 << 20},
		"empty name":     {one("", 1), 16 << 20},
		"upper case":     {one("User-Data", 1), 16 << 20},
		"long name":      {one(strings.Repeat("a", 64), 1), 16 << 20},
		"many documents": {many, 16 << 20},
	} {
		if _, err := Image(tt.docs, tt.size, 512, 0); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSameBytes(t *testing.T) {
	a, err := Image(documents(), 16<<20, 512, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Image(documents(), 16<<20, 512, 1)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("differs: %v", err)
	}
}
