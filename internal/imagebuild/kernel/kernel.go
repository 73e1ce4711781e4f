// Package kernel unpacks a Debian kernel package: the kernel itself and the
// modules tree with its indexes, as the image and the initramfs need them.
package kernel

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/imagebuild/rootfs"
)

// Tree is an unpacked kernel package.
type Tree struct {
	Dir     string // holds vmlinuz and usr/lib/modules/<release>
	Release string // as uname -r prints it
}

// VMLinuz is the path of the kernel.
func (t Tree) VMLinuz() string { return filepath.Join(t.Dir, "vmlinuz") }

// Modules is the path of the modules tree.
func (t Tree) Modules() string { return filepath.Join(t.Dir, modulesDir, t.Release) }

const modulesDir = "usr/lib/modules"

// Unpack extracts the kernel package deb into dir and makes the modules' indexes.
func Unpack(ctx context.Context, deb, dir string) (Tree, error) {
	t := Tree{Dir: dir}
	r, w := io.Pipe()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := hosttool.Run(gctx, hosttool.Cmd{Name: "dpkg-deb", Args: []string{"--fsys-tarfile", deb}, Stdout: w})
		w.CloseWithError(err)
		return err
	})
	g.Go(func() error {
		err := t.extract(tar.NewReader(r))
		if err == nil {
			_, err = io.Copy(io.Discard, r) // the padding after the end marker
		}
		r.CloseWithError(err)
		return err
	})
	if err := g.Wait(); err != nil {
		return Tree{}, fmt.Errorf("unpacking kernel package %s: %w", filepath.Base(deb), err)
	}
	if t.Release == "" {
		return Tree{}, fmt.Errorf("kernel package %s holds no kernel", filepath.Base(deb))
	}
	// The package's own maintainer script would do this on the node.
	if err := hosttool.Run(ctx, hosttool.Cmd{Name: "depmod", Args: []string{"-b", filepath.Join(dir, "usr"), t.Release}}); err != nil {
		return Tree{}, fmt.Errorf("indexing kernel modules: %w", err)
	}
	return t, nil
}

// Open finds what Unpack left in dir.
func Open(dir string) (Tree, error) {
	found, err := filepath.Glob(filepath.Join(dir, modulesDir, "*", "modules.dep"))
	if err != nil || len(found) != 1 {
		return Tree{}, fmt.Errorf("%s: want one modules tree, found %d", dir, len(found))
	}
	return Tree{Dir: dir, Release: filepath.Base(filepath.Dir(found[0]))}, nil
}

func (t *Tree) extract(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := rootfs.Clean(h.Name)
		release, isKernel := strings.CutPrefix(name, "boot/vmlinuz-")
		switch {
		case isKernel:
			t.Release = release
			err = write(t.VMLinuz(), r)
		case strings.HasPrefix(strings.TrimPrefix(name, "usr/"), "lib/modules/"):
			// Older packages say lib/, where trixie says usr/lib/: same place.
			err = write(filepath.Join(t.Dir, "usr", strings.TrimPrefix(name, "usr/")), r)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
