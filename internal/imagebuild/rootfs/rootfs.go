// Package rootfs turns pinned Debian packages into a root file system, as a tar
// stream. It runs mmdebstrap on a private archive made of exactly the pinned
// files, so that nothing else can enter the image, and needs no network.
package rootfs

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/hosttool"
)

// Package is one pinned Debian package. File is the verified .deb on this host.
type Package struct {
	Name    string
	Version string
	Arch    string
	File    string
}

// Request says what to build.
type Request struct {
	Suite    string    // Debian release by code name
	Packages []Package // the whole closure: nothing else is available
	Epoch    int64     // SOURCE_DATE_EPOCH, seconds
	Log      io.Writer // receives what mmdebstrap says; may be nil
}

// Build writes the tar stream of the installed packages to w. It works as root
// and, with the caller's subordinate ids, without; the bytes are the same.
func Build(ctx context.Context, req Request, w io.Writer) error {
	// The directory must be readable by the subordinate user that apt runs as,
	// which a cache below a private home is not: hence the temporary directory.
	dir, err := os.MkdirTemp("", "slipway-rootfs-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("opening the work directory to apt: %w", err)
	}
	if err := writeArchive(ctx, dir, req.Packages); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if _, err := hosttool.Find("newuidmap"); err != nil {
			return err
		}
	}
	return explain(run(ctx, req, dir, w))
}

// run starts mmdebstrap in its own mount and PID name spaces: a killed build
// takes every child and every mount of the chroot with it.
func run(ctx context.Context, req Request, dir string, w io.Writer) error {
	debootstrap := []string{
		"mmdebstrap", "--variant=apt", "--quiet", "--format=tar", "--architectures=amd64",
		"--include=" + strings.Join(names(req.Packages), ","),
		"--dpkgopt=force-unsafe-io", // the tree is thrown away, only the tar counts
		"--aptopt=Acquire::Languages none",
		"--skip=check/signed-by",
	}
	debootstrap = append(debootstrap, req.Suite, "-", "deb [trusted=yes] copy:"+filepath.Join(dir, "archive")+" ./")
	if os.Geteuid() != 0 {
		return hosttool.Run(ctx, hosttool.Cmd{Name: "mmdebstrap", Args: append([]string{"--mode=unshare"}, debootstrap[1:]...), Epoch: req.Epoch, Stdout: w, Stderr: req.Log})
	}
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"}, debootstrap[0], "--mode=root")
	return hosttool.Run(ctx, hosttool.Cmd{Name: "unshare", Args: append(args, debootstrap[1:]...), Epoch: req.Epoch, Stdout: w, Stderr: req.Log})
}

func names(pkgs []Package) []string {
	out := make([]string, 0, len(pkgs))
	for _, p := range pkgs {
		out = append(out, p.Name)
	}
	return out
}

// explain adds what to do to the two failures that a user can mend.
func explain(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	switch {
	case strings.Contains(said, "newuidmap") || strings.Contains(said, "/etc/subuid") || strings.Contains(said, "user namespaces"):
		return diag.WithHint(fmt.Errorf("installing packages without root: %w", err),
			`give your user subordinate ids (usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$USER") and allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)`)
	case strings.Contains(said, "No space left on device"):
		return diag.WithHint(fmt.Errorf("installing packages: %w", err), "free about 1.5 GiB in "+os.TempDir()+", or set TMPDIR to a larger file system")
	default:
		return fmt.Errorf("installing packages: %w", err)
	}
}
