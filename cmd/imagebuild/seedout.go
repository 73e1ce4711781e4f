package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/imagebuild/fatimage"
	"github.com/slipway/slipway/internal/imagebuild/isoimage"
	"github.com/slipway/slipway/internal/seed"
)

// seedEpoch is the time of the files in a seed image, 2000-01-01. Nothing reads
// it; it is fixed so that equal seeds are equal images.
const seedEpoch = 946684800

// seedOutput says where and how a seed is written.
type seedOutput struct {
	format string // dir, iso or fat
	path   string
	force  bool
}

func (o seedOutput) write(ctx context.Context, docs seed.Documents) error {
	tree, err := docs.Tree()
	if err != nil {
		return err
	}
	if err := o.checkPlace(); err != nil {
		return err
	}
	switch o.format {
	case "iso":
		return isoimage.Create(ctx, o.path, isoimage.Spec{Label: disklayout.NameSeed, Tree: tree, Epoch: seedEpoch})
	case "fat":
		return fatimage.Create(ctx, o.path, fatimage.Spec{
			Label: disklayout.NameSeed, Seed: docs.InstanceID, Type: fatimage.FAT16, Size: disklayout.SizeSeed,
			Entries: fatimage.FromTree(tree), Epoch: seedEpoch,
		})
	default:
		return writeDir(o.path, tree)
	}
}

// checkPlace refuses to write over something that is not a seed. What is neither
// a directory nor a file, such as a disk, is never written, not even with force:
// putting a file in its place would hide the device.
func (o seedOutput) checkPlace() error {
	// Not os.Stat: what is written takes the place of a link, not of its target,
	// and /dev/stdout is one.
	st, err := os.Lstat(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		return refuse(fmt.Errorf("%s is a symbolic link and would be replaced", o.path), "name the place that it leads to; --print writes to standard output")
	}
	if st.IsDir() != (o.format == "dir") || !st.IsDir() && !st.Mode().IsRegular() {
		return refuse(fmt.Errorf("%s is there and is not a %s", o.path, o.noun()), "choose another -O")
	}
	if o.force {
		return nil
	}
	ours := isSeedImage
	if st.IsDir() {
		ours = isSeedDir
	}
	if ok, err := ours(o.path); err != nil || ok {
		return err
	}
	return refuse(fmt.Errorf("%s holds something that is not a seed", o.path), "choose another -O, or give --force")
}

func (o seedOutput) noun() string {
	if o.format == "dir" {
		return "directory"
	}
	return "file"
}

func refuse(err error, hint string) error { return exit.With(exit.Refused, diag.WithHint(err, hint)) }

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

// writeDir writes the documents one by one, each complete or not at all. A new
// directory appears only when all of them are in it.
func writeDir(path string, tree fstree.Tree) error {
	if _, err := os.Stat(path); err == nil {
		return fill(path, tree)
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(path)), ".seed-")
	if err != nil {
		return fmt.Errorf("making the seed's directory: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := fill(temp, tree); err != nil {
		return err
	}
	return os.Rename(temp, path)
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
