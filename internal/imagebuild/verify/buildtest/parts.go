package buildtest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/hosttool"
)

// slot makes the squashfs and appends its verity tree.
func (b *builder) slot() error {
	tree := filepath.Join(b.tmp, "root")
	if err := writeTree(tree, b.spec.Root); err != nil {
		return err
	}
	out := b.path("slot.squashfs")
	if err := b.run("mksquashfs", tree, out, "-noappend", "-comp", "zstd", "-quiet", "-no-progress", "-all-root"); err != nil {
		return err
	}
	st, err := os.Stat(out)
	if err != nil {
		return err
	}
	squashfs := (st.Size() + 4095) / 4096 * 4096
	if err := os.Truncate(out, squashfs); err != nil {
		return err
	}
	said, err := hosttool.Output(b.ctx, hosttool.Cmd{Name: "veritysetup", Args: []string{
		"format", out, out, fmt.Sprintf("--hash-offset=%d", squashfs), "--salt=" + strings.Repeat("00", 32), "--uuid=00000000-0000-8000-8000-000000000000"}})
	if err != nil {
		return err
	}
	_, root, _ := strings.Cut(string(said), "Root hash:")
	root, _, _ = strings.Cut(strings.TrimSpace(root), "\n")
	if err := b.add("slot.squashfs", artifact.RoleSlot, ""); err != nil {
		return err
	}
	f := b.index.Files[len(b.index.Files)-1]
	b.index.Slot = artifact.Slot{Content: f.Size, Squashfs: squashfs, Digest: f.Digest, RootHash: strings.TrimSpace(root), Kernel: "6.12.0-test"}
	return nil
}

// fat makes a FAT file system of the size of p and puts it into the image.
func (b *builder) fat(p disklayout.Partition, label string, files map[string]string, raw string) error {
	img, tree := filepath.Join(b.tmp, label+".img"), filepath.Join(b.tmp, label)
	f, err := os.Create(img)
	if err != nil {
		return err
	}
	if err := f.Truncate(p.Size); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := b.run("mkfs.vfat", "--invariant", "-n", label, img); err != nil {
		return err
	}
	if err := writeTree(tree, files); err != nil {
		return err
	}
	entries, err := os.ReadDir(tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := b.run("mcopy", "-s", "-m", "-i", img, filepath.Join(tree, e.Name()), "::"); err != nil {
			return err
		}
	}
	return copyInto(raw, p.Offset, img)
}

func (b *builder) run(name string, args ...string) error {
	return hosttool.Run(b.ctx, hosttool.Cmd{Name: name, Args: args, Epoch: Epoch})
}

func writeTree(dir string, files map[string]string) error {
	for _, name := range sortedKeys(files) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(p, time.Unix(Epoch, 0), time.Unix(Epoch, 0))
	})
}

// copyInto copies the file src into dst at offset and leaves zeros out, so that
// dst stays sparse.
func copyInto(dst string, offset int64, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	buf, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := offset; ; at += int64(len(buf)) {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// initrd packs files as a newc cpio archive, zstd.
func initrd(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	ino := 0
	entry := func(name, data string, mode int) {
		ino++
		fmt.Fprintf(&b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", ino, mode, 0, 0, 1, Epoch, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.WriteString(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	seen := map[string]bool{".": true}
	for _, name := range sortedKeys(files) {
		var dirs []string
		for d := path.Dir(name); !seen[d]; d = path.Dir(d) {
			seen[d] = true
			dirs = append(dirs, d)
		}
		for _, d := range slices.Backward(dirs) {
			entry(d, "", 0o40755)
		}
		entry(name, files[name], 0o100644)
	}
	entry("TRAILER!!!", "", 0)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(b.Bytes(), nil), nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
