// Package isoimage writes ISO 9660 images with Joliet and Rock Ridge names, such
// as the seed that a virtual machine gets as a CD. The bytes depend on the Spec
// alone, not on the clock, the user, the time zone or the path.
package isoimage

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/hosttool"
)

// Spec is everything that decides the bytes of an image.
type Spec struct {
	Label string      // volume name, up to 32 of A-Z, 0-9 and _
	Tree  fstree.Tree // files and directories; links are kept by Rock Ridge only
	Epoch int64       // time of everything, seconds since 1970
}

var label = regexp.MustCompile(`^[A-Z0-9_]{1,32}$`)

// Create writes the image to path; an older file there is replaced only when
// everything has succeeded.
func Create(ctx context.Context, path string, spec Spec) error {
	if !label.MatchString(spec.Label) {
		return fmt.Errorf("ISO image: label %q is not 1-32 of A-Z, 0-9 and _", spec.Label)
	}
	if spec.Epoch <= 0 {
		return fmt.Errorf("ISO image %s: no time given", spec.Label)
	}
	if err := create(ctx, path, spec); err != nil {
		return fmt.Errorf("ISO image %s: %w", spec.Label, err)
	}
	return nil
}

func create(ctx context.Context, path string, spec Spec) error {
	stage, err := os.MkdirTemp("", "slipway-iso-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := lay(stage, spec.Tree); err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer pending.Cleanup()
	// SOURCE_DATE_EPOCH rules the times of the image, set_all_file_dates those of
	// the files, and no_rc keeps the host's configuration out.
	err = hosttool.Run(ctx, hosttool.Cmd{Name: "xorriso", Epoch: spec.Epoch, Args: []string{
		"-no_rc", "-as", "mkisofs", "-quiet", "-V", spec.Label, "-p", "SLIPWAY", "-J", "-r",
		"--set_all_file_dates", "=" + strconv.FormatInt(spec.Epoch, 10), "-o", pending.Name(), stage,
	}})
	if err != nil {
		return err
	}
	return pending.CloseAtomicallyReplace()
}

// lay writes the tree into the staging directory with modes that do not depend on the umask.
func lay(stage string, tree fstree.Tree) error {
	for e := range tree.All() {
		if err := put(filepath.Join(stage, filepath.FromSlash(e.Path)), e); err != nil {
			return err
		}
	}
	return os.Chmod(stage, 0o755)
}

func put(path string, e fstree.Entry) error {
	switch e.Mode.Type() {
	case fs.ModeSymlink:
		return os.Symlink(e.Target, path)
	case fs.ModeDir:
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(path, e.Content, 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(path, e.Mode.Perm()|0o600)
}
