// Package fatimage writes FAT file systems, into a file of their own or into a
// partition of a disk image, without mounting anything. The bytes depend on the
// Spec alone, not on the clock, the user, the time zone or the path.
package fatimage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/hosttool"
)

// Type is the width of the entries of the file allocation table, in bits.
type Type int

// The types. The firmware wants FAT32 on a disk's ESP; FAT16 suits a small seed.
const (
	FAT16 Type = 16
	FAT32 Type = 32
)

// Spec is everything that decides the bytes of a file system.
type Spec struct {
	Label      string // up to 11 characters: upper-case letters, digits, - and _
	Seed       string // the volume serial number derives from it
	Type       Type
	Size       int64   // bytes, a multiple of 4096
	SectorSize int64   // bytes, 512 (also when 0) or 4096: that of the disk it will lie on
	Entries    []Entry // files; their directories are made as needed
	Epoch      int64   // time of every file, seconds since 1970; FAT begins with 1980
}

// Entry is a file. Its content is Source, a file that is streamed, or Content
// when Source is empty.
type Entry struct {
	Path    string // slash-separated, relative; ASCII
	Content []byte
	Source  string
}

// FromTree takes the regular files of a tree; FAT has neither modes nor links.
func FromTree(t fstree.Tree) []Entry {
	var entries []Entry
	for e := range t.All() {
		if e.Mode.IsRegular() {
			entries = append(entries, Entry{Path: e.Path, Content: e.Content})
		}
	}
	return entries
}

// Create writes the file system into a new file at path; an older file there is
// replaced only when everything has succeeded.
func Create(ctx context.Context, path string, spec Spec) error {
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("making FAT image: %w", err)
	}
	defer pending.Cleanup()
	if err := pending.Truncate(spec.Size); err != nil {
		return fmt.Errorf("making FAT image: %w", err)
	}
	if err := Write(ctx, pending.Name(), 0, spec); err != nil {
		return err
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("making FAT image: %w", err)
	}
	return nil
}

// Write writes the file system into the existing file at path, from offset
// (bytes, a multiple of the sector size) on. The file must reach to the end of
// it; what the place held before is discarded, and unused space stays a hole.
func Write(ctx context.Context, path string, offset int64, spec Spec) error {
	spec.SectorSize = cmp.Or(spec.SectorSize, 512)
	if err := check(spec, offset); err != nil {
		return fmt.Errorf("FAT file system %s: %w", spec.Label, err)
	}
	w := writer{dir: filepath.Dir(path), name: "./" + filepath.Base(path), offset: offset, spec: spec}
	for _, step := range []func(context.Context) error{w.clear, w.format, w.verify, w.directories, w.files} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("FAT file system %s: %w", spec.Label, err)
		}
	}
	return nil
}

// writer runs the tools in the directory of the file, so that its path cannot
// be taken for mtools syntax.
type writer struct {
	dir, name string
	offset    int64
	spec      Spec
}

func (w writer) path() string { return filepath.Join(w.dir, w.name) }

// format makes the empty file system. --invariant fixes what mkfs would take
// from the clock: the time of the label, which SOURCE_DATE_EPOCH does not reach.
// The geometry, of no use to anybody, would otherwise depend on the whole file.
func (w writer) format(ctx context.Context) error {
	id := sha256.Sum256([]byte("slipway fat\x00" + w.spec.Seed))
	return hosttool.Run(ctx, hosttool.Cmd{Name: "mkfs.vfat", Dir: w.dir, Epoch: w.spec.Epoch, Args: []string{
		"--invariant", "-g", "64/32",
		"-F", strconv.Itoa(int(w.spec.Type)),
		"-S", strconv.FormatInt(w.spec.SectorSize, 10),
		"-n", w.spec.Label,
		"-i", hex.EncodeToString(id[:4]),
		"--offset", strconv.FormatInt(w.offset/w.spec.SectorSize, 10),
		w.name, strconv.FormatInt(w.spec.Size/1024, 10),
	}})
}

func (w writer) directories(ctx context.Context) error {
	var dirs []string
	for _, d := range directories(w.spec.Entries) {
		dirs = append(dirs, "::/"+d)
	}
	if len(dirs) == 0 {
		return nil
	}
	return hosttool.Run(ctx, w.mtools("mmd", dirs...))
}

// files copies the files in the order of their paths. They are handed to mcopy
// as files, because a full image is no error to it when it reads a pipe.
func (w writer) files(ctx context.Context) error {
	stage, err := os.MkdirTemp("", "slipway-fat-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	sorted := slices.Clone(w.spec.Entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	for _, e := range sorted {
		if err := w.file(ctx, e, filepath.Join(stage, "content")); err != nil {
			return fmt.Errorf("writing %s: %w", e.Path, err)
		}
	}
	return nil
}

// file copies one file; of the source only the content goes into the image.
func (w writer) file(ctx context.Context, e Entry, stage string) error {
	if e.Source == "" {
		if err := os.WriteFile(stage, e.Content, 0o600); err != nil {
			return err
		}
		return hosttool.Run(ctx, w.mtools("mcopy", stage, "::/"+e.Path))
	}
	source, err := filepath.Abs(e.Source)
	if err != nil {
		return err
	}
	if st, err := os.Stat(source); err != nil || !st.Mode().IsRegular() {
		return cmp.Or(err, fmt.Errorf("%s is not a file", source))
	}
	return hosttool.Run(ctx, w.mtools("mcopy", source, "::/"+e.Path))
}

// mtools is one run of a tool of mtools, without any configuration of the host.
func (w writer) mtools(name string, args ...string) hosttool.Cmd {
	image := w.name + "@@" + strconv.FormatInt(w.offset, 10)
	return hosttool.Cmd{
		Name:  name,
		Args:  append([]string{"-i", image}, args...),
		Dir:   w.dir,
		Env:   []string{"MTOOLSRC=/dev/null", "MTOOLS_SKIP_CHECK=1"},
		Epoch: w.spec.Epoch,
	}
}

// Read copies a file of the file system that lies in the file at path, from offset
// (bytes) on, to w.
func Read(ctx context.Context, path string, offset int64, name string, to io.Writer) error {
	w := writer{dir: filepath.Dir(path), name: "./" + filepath.Base(path), offset: offset}
	if err := checkNames([]Entry{{Path: name}}); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	cmd := w.mtools("mtype", "::/"+name)
	cmd.Stdout = to
	if err := hosttool.Run(ctx, cmd); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
