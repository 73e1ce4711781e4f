package pin

import (
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// Wanted is what a profile asks for, before it is fixed by digest.
type Wanted struct {
	Suite      string
	Components []string
	Sets       []WantedSet
	Artifacts  []Artifact // without digests
}

// WantedSet is a package set to resolve.
type WantedSet struct {
	Name     string
	Packages []string // sorted
	// Closure asks for all dependencies, the essential packages included;
	// otherwise the set is just the packages, and a meta package stands for
	// the image package that it depends on.
	Closure bool
}

// Want lists what an environment needs from outside. builtin are the names of
// the built-in packages and kernel is the kernel's meta package, both for the
// environment's substrate.
func Want(c *cluster.Cluster, builtin []string, kernel string) Wanted {
	rootfs := slices.Concat([]string{"apt"}, builtin, c.System.Packages)
	slices.Sort(rootfs)
	return Wanted{
		Suite:      c.Debian.Suite,
		Components: c.Debian.Components,
		Sets: []WantedSet{
			{Name: SetKernel, Packages: []string{kernel}},
			{Name: SetNetboot, Packages: []string{"ipxe"}},
			{Name: SetRootfs, Packages: slices.Compact(rootfs), Closure: true},
		},
		Artifacts: WantArtifacts(c),
	}
}

// IsKernelMeta reports whether a package name is one of the meta packages that
// only depend on the kernel of the day (linux-image-amd64), and not a kernel
// with its version in the name (linux-image-6.12.1-amd64).
func IsKernelMeta(name string) bool {
	flavour, ok := strings.CutPrefix(name, "linux-image-")
	return ok && flavour != "" && (flavour[0] < '0' || flavour[0] > '9')
}
