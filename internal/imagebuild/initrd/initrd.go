// Package initrd makes the initramfs: nodeinit as /init, the kernel modules it
// needs to reach its disk, and nothing else.
package initrd

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"
	"github.com/ulikunitz/xz"
)

// Request says what goes in.
type Request struct {
	Init    string   // path of the static nodeinit binary
	Modules string   // path of a modules tree (…/lib/modules/<release>) with its indexes
	Wanted  []string // module names; their dependencies follow, built-in ones are skipped
	Files   string   // directory whose files go in as they are; "" means none
}

// Build writes the zstd-compressed cpio archive to w. The same input gives the
// same bytes: inode numbers, times and owners are normalised.
func Build(req Request, w io.Writer) error {
	records, err := collect(req)
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	out := cpio.Newc.Writer(enc)
	cpio.MakeAllReproducible(records)
	if err := cpio.WriteRecords(out, records); err != nil {
		return fmt.Errorf("writing initramfs: %w", err)
	}
	if err := cpio.WriteTrailer(out); err != nil {
		return fmt.Errorf("ending initramfs: %w", err)
	}
	return enc.Close()
}

func collect(req Request) ([]cpio.Record, error) {
	release := filepath.Base(req.Modules)
	base := path.Join("lib/modules", release)
	files, err := moduleFiles(req.Modules, req.Wanted)
	if err != nil {
		return nil, err
	}
	initBinary, err := os.ReadFile(req.Init)
	if err != nil {
		return nil, fmt.Errorf("reading nodeinit: %w", err)
	}
	// /dev/console must exist before devtmpfs is mounted: the kernel opens it
	// as standard input and output of /init.
	records := []cpio.Record{
		cpio.StaticFile("init", string(initBinary), 0o755),
		cpio.CharDev("dev/console", 0o600, 5, 1),
	}
	for _, name := range files {
		data, err := readModule(filepath.Join(req.Modules, name))
		if err != nil {
			return nil, err
		}
		records = append(records, cpio.StaticFile(path.Join(base, plain(name)), string(data), 0o644))
	}
	indexes, err := indexRecords(req.Modules, base, files)
	if err != nil {
		return nil, err
	}
	more, err := fileRecords(req.Files)
	if err != nil {
		return nil, err
	}
	return withDirectories(slices.Concat(records, indexes, more)), nil
}

// fileRecords are the regular files below dir.
func fileRecords(dir string) ([]cpio.Record, error) {
	if dir == "" {
		return nil, nil
	}
	var records []cpio.Record
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		records = append(records, cpio.StaticFile(filepath.ToSlash(name), string(data), 0o644))
		return err
	})
	return records, err
}

// withDirectories adds every parent directory, and sorts by path so that parents
// come before what they hold.
func withDirectories(records []cpio.Record) []cpio.Record {
	seen := map[string]bool{}
	for _, name := range []string{"proc", "sys", "dev", "run", "etc", "tmp", "mnt"} {
		seen[name] = true
	}
	for _, r := range records {
		for d := path.Dir(r.Name); d != "."; d = path.Dir(d) {
			seen[d] = true
		}
	}
	for d := range seen {
		records = append(records, cpio.Directory(d, 0o755))
	}
	slices.SortFunc(records, func(a, b cpio.Record) int { return strings.Compare(a.Name, b.Name) })
	return records
}

// plain is the name without the compression suffix: modules are stored plain,
// the archive as a whole is compressed, which is smaller and spares the node a
// decompressor for each kind.
func plain(name string) string { return strings.TrimSuffix(name, ".xz") }

func readModule(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil || !strings.HasSuffix(name, ".xz") {
		return data, err
	}
	r, err := xz.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decompressing %s: %w", name, err)
	}
	return io.ReadAll(r)
}
