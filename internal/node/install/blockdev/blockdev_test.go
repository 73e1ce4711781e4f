package blockdev

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"
)

func device(t *testing.T, size int64) *Device {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	const size = 32 << 20
	d := device(t, size)
	if d.Size() != size {
		t.Errorf("size %d", d.Size())
	}
	data := make([]byte, 9<<20+512) // more than two bounces, and no multiple of a page
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(data))
	// Whole blocks of the heap, and memory at an odd address, cut out of one.
	for name, memory := range map[string][2][]byte{
		"aligned": {data, got}, "odd": {append([]byte{0}, data...)[1:], make([]byte, len(data)+1)[1:]},
	} {
		if fits(memory[0]) != (name == "aligned") || fits(memory[1]) != (name == "aligned") {
			t.Fatalf("%s memory is at %p and %p", name, memory[0], memory[1])
		}
		if err := d.Zero(0, size); err != nil {
			t.Fatal(err)
		}
		if n, err := d.WriteAt(memory[0], 4096); err != nil || n != len(data) {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
		if err := d.Flush(); err != nil {
			t.Fatal(err)
		}
		if n, err := d.ReadAt(memory[1], 4096); err != nil || n != len(data) || !bytes.Equal(memory[1], data) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	for name, zero := range map[string]func(int64, int64) error{"zero": d.Zero, "written zeros": d.writeZeros, "discard": d.Discard} {
		if _, err := d.WriteAt(data, 4096); err != nil {
			t.Fatal(err)
		}
		if err := zero(8192, 6<<20); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := bytes.Clone(data)
		clear(want[4096 : 4096+6<<20])
		if _, err := d.ReadAt(got, 4096); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, %v", name, err)
		}
	}
	if _, err := d.ReadAt(got, size-4096); !errors.Is(err, io.EOF) {
		t.Errorf("reading over the end: %v", err)
	}
}

func TestAligned(t *testing.T) {
	for n := range 100 {
		b := aligned(n + 1)
		if uintptr(unsafe.Pointer(&b[0]))%alignment != 0 || len(b) != n+1 {
			t.Fatalf("%p, %d bytes", &b[0], len(b))
		}
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
