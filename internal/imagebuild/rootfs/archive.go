package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway/slipway/internal/hosttool"
)

// writeArchive makes dir/archive: the packages under their names and an index.
func writeArchive(ctx context.Context, dir string, pkgs []Package) error {
	archive := filepath.Join(dir, "archive")
	if err := os.Mkdir(archive, 0o755); err != nil {
		return fmt.Errorf("making the private archive: %w", err)
	}
	for _, p := range pkgs {
		// A colon, as in an epoch, has a meaning in URLs.
		name := fmt.Sprintf("%s_%s_%s.deb", p.Name, strings.ReplaceAll(p.Version, ":", "%3a"), p.Arch)
		if err := place(p.File, filepath.Join(archive, name)); err != nil {
			return fmt.Errorf("adding %s to the private archive: %w", p.Name, err)
		}
	}
	index, err := os.OpenFile(filepath.Join(archive, "Packages"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing the private archive's index: %w", err)
	}
	err = hosttool.Run(ctx, hosttool.Cmd{Name: "apt-ftparchive", Args: []string{"--md5=no", "--sha1=no", "--sha512=no", "packages", "."}, Dir: archive, Stdout: index})
	if err := errors.Join(err, index.Close()); err != nil {
		return fmt.Errorf("writing the private archive's index: %w", err)
	}
	return nil
}

// place makes a hard link of src, or a copy where the file systems differ.
func place(src, dst string) error {
	err := os.Link(src, dst)
	if err == nil || !errors.Is(err, syscall.EXDEV) && !errors.Is(err, syscall.EPERM) {
		return err
	}
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
