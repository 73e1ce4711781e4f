package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/imagebuild/aptresolve"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/profilefile"
)

// yard is where the other images are made. What it holds is prepared before any
// clock runs.
type yard struct {
	dir      string
	cluster  cluster.Cluster
	lock     *pin.Lock
	packages []string // what all images contain, without dependencies
	sources  []string // apt sources: the locked packages first, then the archive for what else the others need
}

// initrdPackages are what mkosi builds its initrd from, beside what the image
// has: mkosi's own configuration for Debian (mkosi-initrd).
func initrdPackages() []string {
	return []string{"systemd", "bash", "less", "p11-kit", "lvm2", "dmsetup", "libcryptsetup12", "btrfs-progs", "erofs-utils",
		"util-linux", "libfido2-1", "libtss2-esys-3.0.2-0t64", "libtss2-mu-4.0.1-0t64", "libtss2-rc0t64", "libtss2-tcti-device0t64",
		"systemd-cryptsetup", "systemd-repart"}
}

// toolPackages are what mkosi needs around it to make a bootable disk image.
func toolPackages() []string {
	return []string{"mkosi", "systemd-repart", "systemd-boot", "systemd-boot-efi", "systemd-boot-tools", "systemd-ukify", "e2fsprogs",
		"mtools", "dosfstools", "kmod", "zstd", "cpio", "python3-pefile", "bubblewrap", "uidmap", "debian-archive-keyring"}
}

// openYard reads profile and lock and finds the archive.
func openYard(t *testing.T) *yard {
	t.Helper()
	p, err := profilefile.Load("../../profiles/lab.yaml")
	must(t, err)
	text, err := os.ReadFile("../../profiles/lab.lock")
	must(t, err)
	lock, err := pin.Parse("profiles/lab.lock", text)
	must(t, err)
	dir, err := os.MkdirTemp("", "slipway-bench-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // apt reads it as a user of its own
	y := &yard{dir: dir, cluster: p.Cluster, lock: lock}
	y.packages = slices.Concat(lock.Set(pin.SetRootfs).Wanted, lock.Set(pin.SetKernel).Wanted)
	m, err := aptresolve.FindMirrors(t.Context(), p.Cluster.Debian.Mirror, os.Getenv)
	must(t, err)
	suite := p.Cluster.Debian.Suite
	y.sources = []string{
		"deb [trusted=yes] copy:" + y.path("locked") + " ./",
		fmt.Sprintf("deb %s %s main", m.Debian, suite),
		fmt.Sprintf("deb %s %s-updates main", m.Debian, suite),
		fmt.Sprintf("deb %s %s-security main", m.Security, suite),
	}
	return y
}

func (y *yard) path(elem ...string) string {
	return filepath.Join(append([]string{y.dir}, elem...)...)
}

// run runs a program of the host.
func run(ctx context.Context, name string, args ...string) error {
	return hosttool.Run(ctx, hosttool.Cmd{Name: name, Args: args})
}

// preferLocked makes apt take the locked version of a package even where the
// archive has a newer one.
const preferLocked = `mkdir -p "$1/etc/apt/preferences.d"
printf 'Package: *\nPin: origin ""\nPin-Priority: 1001\n' >"$1/etc/apt/preferences.d/locked"`

// fillArchives makes two archives: of the locked packages, as our build has them
// in its cache, and of everything that the others need, among it the former.
func (y *yard) fillArchives(t *testing.T) {
	t.Helper()
	y.linkLocked(t)
	include := slices.Concat(y.packages, []string{"initramfs-tools"}, initrdPackages())
	args := []string{"--mode=root", "--variant=apt", "--quiet", "--skip=essential/unlink,cleanup/apt/cache", "--setup-hook=" + preferLocked,
		"--include=" + strings.Join(include, ","), "--customize-hook=copy-out /var/cache/apt/archives " + y.dir, y.cluster.Debian.Suite, "/dev/null"}
	must(t, run(t.Context(), "mmdebstrap", append(args, y.sources...)...))
	must(t, os.MkdirAll(y.path("peer", "repo", "dists", y.cluster.Debian.Suite, "main", "binary-amd64"), 0o755))
	must(t, os.Rename(y.path("archives"), y.path("peer", "repo", "pool")))
	must(t, y.index(t.Context()))
}

// linkLocked lays the locked packages into one directory with an index.
func (y *yard) linkLocked(t *testing.T) {
	t.Helper()
	must(t, os.Mkdir(y.path("locked"), 0o755))
	dir, err := cas.DefaultDir(os.Getenv)
	must(t, err)
	cache, err := cas.Open(dir)
	must(t, err)
	for _, p := range slices.Concat(y.lock.Set(pin.SetRootfs).Packages, y.lock.Set(pin.SetKernel).Packages) {
		must(t, run(t.Context(), "cp", "--reflink=auto", cache.Path(p.Digest), y.path("locked", filepath.Base(p.Path))))
	}
	must(t, y.ftparchive(t.Context(), y.path("locked"), "Packages", "packages", "."))
}

// index gives the archive of the others the shape of a Debian mirror, which is
// what mkosi wants.
func (y *yard) index(ctx context.Context) error {
	repo, suite := y.path("peer", "repo"), y.cluster.Debian.Suite
	dist := filepath.Join("dists", suite)
	if err := y.ftparchive(ctx, repo, filepath.Join(dist, "main", "binary-amd64", "Packages"), "packages", "pool"); err != nil {
		return err
	}
	option := func(key, value string) string { return "APT::FTPArchive::Release::" + key + "=" + value }
	tmp := "Release.new" // outside of what it lists
	if err := y.ftparchive(ctx, repo, tmp, "-o", option("Suite", suite), "-o", option("Codename", suite), "-o", option("Components", "main"),
		"-o", option("Architectures", "amd64"), "release", dist); err != nil {
		return err
	}
	return os.Rename(filepath.Join(repo, tmp), filepath.Join(repo, dist, "Release"))
}

func (y *yard) ftparchive(ctx context.Context, dir, out string, args ...string) error {
	text, err := hosttool.Output(ctx, hosttool.Cmd{Name: "apt-ftparchive", Args: args, Dir: dir})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, out), text, 0o644)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
