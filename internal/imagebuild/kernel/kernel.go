// Package kernel unpacks a Debian kernel package: the kernel itself and the
// modules tree with its indexes, as the image and the initramfs need them.
package kernel

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/slipway/slipway/internal/debfile"
	"github.com/slipway/slipway/internal/hosttool"
)

// Tree is an unpacked kernel package.
type Tree struct {
	Dir     string // holds vmlinuz and usr/lib/modules/<release>
	Release string // as uname -r prints it
}

// VMLinuz is the path of the kernel.
func (t Tree) VMLinuz() string { return filepath.Join(t.Dir, "vmlinuz") }

// ModulesDir is where the modules of all kernels are, on a node and below Tree.Dir.
const ModulesDir = "usr/lib/modules"

// Modules is the path of the modules tree.
func (t Tree) Modules() string { return filepath.Join(t.Dir, ModulesDir, t.Release) }

// Unpack extracts the kernel package deb into dir and makes the modules' indexes.
func Unpack(ctx context.Context, deb, dir string) (Tree, error) {
	t := Tree{Dir: dir}
	err := debfile.Walk(ctx, deb, func(name string, content io.Reader) error {
		if release, ok := strings.CutPrefix(name, "boot/vmlinuz-"); ok {
			t.Release = release
			return debfile.Write(t.VMLinuz(), content)
		}
		if module, ok := strings.CutPrefix(name, ModulesDir+"/"); ok {
			return debfile.Write(filepath.Join(dir, ModulesDir, module), content)
		}
		return nil
	})
	if err != nil {
		return Tree{}, fmt.Errorf("unpacking the kernel: %w", err)
	}
	if t.Release == "" {
		return Tree{}, fmt.Errorf("package %s holds no kernel", filepath.Base(deb))
	}
	// The package's own maintainer script would do this on the node.
	if err := hosttool.Run(ctx, hosttool.Cmd{Name: "depmod", Args: []string{"-b", filepath.Join(dir, "usr"), t.Release}}); err != nil {
		return Tree{}, fmt.Errorf("indexing kernel modules: %w", err)
	}
	return t, nil
}

// Open finds what Unpack left in dir.
func Open(dir string) (Tree, error) {
	found, err := filepath.Glob(filepath.Join(dir, ModulesDir, "*", "modules.dep"))
	if err != nil || len(found) != 1 {
		return Tree{}, fmt.Errorf("%s: want one modules tree, found %d", dir, len(found))
	}
	return Tree{Dir: dir, Release: filepath.Base(filepath.Dir(found[0]))}, nil
}
