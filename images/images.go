// Package images holds the data that images are made of: package sets, kernel
// flavours, module lists and the files that go into the root file system.
package images

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed packages initrd all:rootfs rootfs.links rootfs.modes rootfs.drop
var files embed.FS

// Packages returns the names of the Debian packages for a substrate ("vm" or
// "metal"), without their dependencies.
func Packages(substrate string) ([]string, error) {
	base, err := list("packages/base.list")
	if err != nil {
		return nil, err
	}
	more, err := list("packages/" + substrate + ".list")
	return append(base, more...), err
}

// KernelPackage is the meta package that names the kernel of a substrate. The
// cloud kernel has no drivers for real network cards or USB storage.
func KernelPackage(substrate string) string {
	if substrate == "metal" {
		return "linux-image-amd64"
	}
	return "linux-image-cloud-amd64"
}

// InitrdModules returns the names of the kernel modules that the initramfs of a
// substrate carries, without their dependencies.
func InitrdModules(substrate string) ([]string, error) {
	return list("initrd/" + substrate + ".modules")
}

// Rootfs is the tree of files that is laid over the packages.
func Rootfs() (fs.FS, error) { return fs.Sub(files, "rootfs") }

// list reads a file with one word a line; # starts a comment.
func list(name string) ([]string, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading built-in list: %w", err)
	}
	var words []string
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words = append(words, strings.Fields(line)...)
	}
	return words, nil
}
