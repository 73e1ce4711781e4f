package initrd

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"
)

// tree makes a modules tree with the indexes that depmod writes.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "6.1.0-test")
	for name, text := range map[string]string{
		"kernel/fs/a.ko":           "module a",
		"kernel/lib/b-c.ko":        "module b",
		"kernel/drivers/unused.ko": "module unused",
		"kernel/crypto/sum.ko":     "module sum",
		"kernel/arch/sum-fast.ko":  "module sum-fast",
		"kernel/lib/base.ko":       "module base",
		"modules.dep":              "kernel/fs/a.ko: kernel/lib/b-c.ko\nkernel/lib/b-c.ko:\nkernel/drivers/unused.ko:\nkernel/crypto/sum.ko:\nkernel/arch/sum-fast.ko: kernel/lib/base.ko\nkernel/lib/base.ko:\n",
		"modules.softdep":          "# comment\nsoftdep b_c pre: crypto-sum platform:none post: unused\nsoftdep a gcm\nsoftdep unused pre: unused\n",
		"modules.builtin":          "kernel/drivers/block/virtio_blk.ko\n",
		"modules.alias":            "alias fs-a a\nalias pci:v1 unused\nalias crypto-b b_c\nalias crypto-sum sum_fast\nalias crypto-sum sum\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, wanted ...string) (map[string]string, error) {
	t.Helper()
	init := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(init, []byte("init program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, again bytes.Buffer
	req := Request{Init: init, Modules: tree(t), Wanted: wanted}
	if err := Build(req, &out); err != nil {
		return nil, err
	}
	req.Modules = tree(t) // another path, other inodes and times
	if err := Build(req, &again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("two builds differ")
	}
	dec, err := zstd.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(dec); err != nil {
		t.Fatal(err)
	}
	return unpack(t, plain.Bytes()), nil
}

func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	var order []string
	err := cpio.ForEachRecord(cpio.Newc.Reader(bytes.NewReader(archive)), func(r cpio.Record) error {
		order = append(order, r.Name)
		if r.FileSize > 0 {
			b := make([]byte, r.FileSize)
			if _, err := r.ReadAt(b, 0); err != nil {
				return err
			}
			files[r.Name] = string(b)
			return nil
		}
		files[r.Name] = ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(order) {
		t.Errorf("entries are not sorted, a child may come before its directory: %v", order)
	}
	return files
}

func TestBuildTakesDependenciesAndNothingElse(t *testing.T) {
	files, err := build(t, "a", "virtio-blk")
	if err != nil {
		t.Fatal(err)
	}
	const base = "lib/modules/6.1.0-test/"
	if files["init"] != "init program" || files[base+"kernel/fs/a.ko"] != "module a" || files[base+"kernel/lib/b-c.ko"] != "module b" {
		t.Errorf("a file is missing: %v", files)
	}
	if _, ok := files[base+"kernel/drivers/unused.ko"]; ok {
		t.Error("a module that nobody asked for is in")
	}
	if _, ok := files["dev/console"]; !ok {
		t.Error("there is no /dev/console: /init would have no output")
	}
	if got := files[base+"modules.dep"]; strings.Contains(got, "unused") || !strings.Contains(got, "a.ko: kernel/lib/b-c.ko") {
		t.Errorf("modules.dep is %q", got)
	}
	if got := files[base+"modules.alias"]; got != "alias fs-a a\nalias crypto-b b_c\nalias crypto-sum sum_fast\nalias crypto-sum sum\n" {
		t.Errorf("modules.alias is %q", got)
	}
}

// What a module asks the kernel for only when it is used is in, and the node is told
// to load it before.
func TestBuildTakesSoftDependencies(t *testing.T) {
	files, err := build(t, "a")
	if err != nil {
		t.Fatal(err)
	}
	const base = "lib/modules/6.1.0-test/"
	for _, name := range []string{"kernel/crypto/sum.ko", "kernel/arch/sum-fast.ko", "kernel/lib/base.ko"} {
		if files[base+name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	want := "softdep a pre: sum_fast sum\nsoftdep b_c pre: sum_fast sum\n"
	if got := files[base+"modules.softdep"]; got != want {
		t.Errorf("modules.softdep is %q, want %q", got, want)
	}
	if _, ok := files[base+"kernel/drivers/unused.ko"]; ok {
		t.Error("a module that is wanted afterwards is in")
	}
}

func TestBuildRefusesAnUnknownModule(t *testing.T) {
	_, err := build(t, "a", "nosuch")
	if err == nil || !strings.Contains(err.Error(), "6.1.0-test has no module nosuch") {
		t.Errorf("got %v", err)
	}
}
