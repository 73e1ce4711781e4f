package diskimage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

func create(t *testing.T) (string, disklayout.Layout) {
	t.Helper()
	layout, err := disklayout.New("test", disklayout.MinESP, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "disk.raw")
	if err := Create(path, layout); err != nil {
		t.Fatal(err)
	}
	return path, layout
}

func TestCreateSatisfiesSgdisk(t *testing.T) {
	path, layout := create(t)
	out, err := hosttool.Output(t.Context(), hosttool.Cmd{Name: "sgdisk", Args: []string{"-v", "-p", path}})
	if err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk: %v\n%s", err, out)
	}
	for _, p := range layout.Partitions {
		if !strings.Contains(string(out), p.Name) {
			t.Errorf("sgdisk does not see %s:\n%s", p.Name, out)
		}
	}
	again, _ := create(t)
	if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "cmp", Args: []string{path, again}}); err != nil {
		t.Errorf("two images of one layout differ: %v", err)
	}
}

func TestCopyInto(t *testing.T) {
	path, layout := create(t)
	slot, _ := layout.Find(disklayout.NameSlotA)
	src := filepath.Join(t.TempDir(), "content")
	content := bytes.Repeat([]byte("slot"), 1000)
	if err := os.WriteFile(src, content, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := CopyInto(path, slot.Offset, slot.Size, src)
	if err != nil || n != int64(len(content)) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, n)
	if _, err := f.ReadAt(got, slot.Offset); err != nil || !bytes.Equal(got, content) {
		t.Error("the content is not at its place")
	}
	if _, err := CopyInto(path, slot.Offset, 100, src); err == nil || !strings.Contains(err.Error(), "does not fit into a partition of 100") {
		t.Errorf("too large a content gives %v", err)
	}
}

func TestQcow2HoldsTheSameDisk(t *testing.T) {
	path, _ := create(t)
	out := path + ".qcow2"
	if err := Qcow2(t.Context(), path, out); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", out}, {"compare", path, out}} {
		if err := hosttool.Run(t.Context(), hosttool.Cmd{Name: "qemu-img", Args: args}); err != nil {
			t.Error(err)
		}
	}
}
