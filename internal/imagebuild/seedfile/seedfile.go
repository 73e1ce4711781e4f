// Package seedfile puts the cloud-init documents of a node where somebody wants
// them: into a directory, a CD image or a FAT image. What is there already is
// replaced only when that was said, or when it is the same.
package seedfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/imagebuild/fatimage"
	"github.com/slipway/slipway/internal/imagebuild/isoimage"
	"github.com/slipway/slipway/internal/seed"
)

// Epoch is the time of the files in a seed image, 2000-01-01. Nothing reads it; it
// is fixed so that equal seeds are equal images.
const Epoch = 946684800

// The formats.
const (
	Dir = "dir"
	ISO = "iso"
	FAT = "fat"
)

// Formats lists what an Output can have as its format.
func Formats() []string { return []string{Dir, ISO, FAT} }

// Output says where and how a seed is written.
type Output struct {
	Format string // of Formats
	Path   string
	Force  bool // replace another seed, or something else, that is there
}

// Write writes the documents. What is refused ends with exit.Refused, and leaves
// everything as it was.
func (o Output) Write(ctx context.Context, docs seed.Documents) error {
	tree, err := docs.Tree()
	if err != nil {
		return err
	}
	if err := o.checkPlace(); err != nil {
		return err
	}
	if o.Format == Dir {
		return o.writeDir(tree)
	}
	return o.writeImage(ctx, tree, docs.InstanceID)
}

// checkPlace refuses to write over something that is not a seed. What is neither
// a directory nor a file, such as a disk, is never written, not even with force:
// putting a file in its place would hide the device.
func (o Output) checkPlace() error {
	// Not os.Stat: what is written takes the place of a link, not of its target,
	// and /dev/stdout is one.
	st, err := os.Lstat(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		return refuse(fmt.Errorf("%s is a symbolic link and would be replaced", o.Path), "name the place that it leads to; --print writes to standard output")
	}
	if st.IsDir() != (o.Format == Dir) || !st.IsDir() && !st.Mode().IsRegular() {
		return refuse(fmt.Errorf("%s is there and is not a %s", o.Path, o.noun()), "choose another -O")
	}
	if o.Force {
		return nil
	}
	ours := isSeedImage
	if st.IsDir() {
		ours = isSeedDir
	}
	if ok, err := ours(o.Path); err != nil || ok {
		return err
	}
	return refuse(fmt.Errorf("%s holds something that is not a seed", o.Path), "choose another -O, or give --force")
}

func (o Output) noun() string {
	if o.Format == Dir {
		return "directory"
	}
	return "file"
}

func refuse(err error, hint string) error { return exit.With(exit.Refused, diag.WithHint(err, hint)) }

// another refuses to replace a seed by a different one.
func (o Output) another(what string) error {
	return refuse(fmt.Errorf("%s holds another seed%s", o.Path, what), "choose another -O, or give --force to replace it")
}

// isSeedDir reports whether a directory holds nothing but seed documents.
func isSeedDir(path string) (bool, error) {
	entries, err := os.ReadDir(path)
	foreign := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(seed.Names(), e.Name()) })
	return !foreign, err
}

// isSeedImage reports whether a file is empty, or an image with the label of a
// seed: in FAT16 at byte 43, in ISO 9660 at byte 40 of sector 16.
func isSeedImage(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err == nil, err
	}
	for _, at := range []int64{43, 16*2048 + 40} {
		label := make([]byte, 11)
		if _, err := f.ReadAt(label, at); err == nil && string(bytes.TrimRight(label, " ")) == disklayout.NameSeed {
			return true, nil
		}
	}
	return false, nil
}

// writeImage makes the image beside its place, because whether it replaces another
// one is known only when it is there: equal seeds are equal images.
func (o Output) writeImage(ctx context.Context, tree fstree.Tree, instance string) error {
	temp, err := o.beside()
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	image := filepath.Join(temp, "image")
	if o.Format == ISO {
		err = isoimage.Create(ctx, image, isoimage.Spec{Label: disklayout.NameSeed, Tree: tree, Epoch: Epoch})
	} else {
		err = fatimage.Create(ctx, image, fatimage.Spec{
			Label: disklayout.NameSeed, Seed: instance, Type: fatimage.FAT16, Size: disklayout.SizeSeed,
			Entries: fatimage.FromTree(tree), Epoch: Epoch,
		})
	}
	if err != nil {
		return err
	}
	old, err := os.ReadFile(o.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh, err := os.ReadFile(image)
	switch {
	case err != nil:
		return err
	case len(old) > 0 && !o.Force && !bytes.Equal(old, fresh):
		return o.another("")
	}
	return os.Rename(image, o.Path)
}

// beside makes a directory on the file system of the output.
func (o Output) beside() (string, error) {
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(o.Path)), ".seed-")
	if err != nil {
		return "", fmt.Errorf("making the seed: %w", err)
	}
	return temp, nil
}

// writeDir writes the documents one by one, each complete or not at all. A new
// directory appears only when all of them are in it.
func (o Output) writeDir(tree fstree.Tree) error {
	if _, err := os.Stat(o.Path); err == nil {
		if differ := differing(o.Path, tree); len(differ) > 0 && !o.Force {
			return o.another(": " + strings.Join(differ, ", ") + " would be replaced")
		}
		return fill(o.Path, tree)
	}
	temp, err := o.beside()
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := fill(temp, tree); err != nil {
		return err
	}
	return os.Rename(temp, o.Path)
}

// differing names the documents that are in a directory with another content.
func differing(dir string, tree fstree.Tree) []string {
	var out []string
	for e := range tree.All() {
		have, err := os.ReadFile(filepath.Join(dir, e.Path))
		if !errors.Is(err, fs.ErrNotExist) && (err != nil || !bytes.Equal(have, e.Content)) {
			out = append(out, e.Path)
		}
	}
	return out
}

func fill(dir string, tree fstree.Tree) error {
	for e := range tree.All() {
		err := renameio.WriteFile(filepath.Join(dir, e.Path), e.Content, e.Mode.Perm(), renameio.WithTempDir(dir))
		if err != nil {
			return fmt.Errorf("writing %s: %w", e.Path, err)
		}
	}
	return nil
}
