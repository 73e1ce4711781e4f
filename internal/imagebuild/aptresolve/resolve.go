// Package aptresolve turns names of Debian packages into exact versions with
// digests. The host's apt does it, in a private root of its own: it verifies
// the archive's signature and it knows every rule of dependency resolution.
// The host's configuration, sources and package state are neither read nor written.
package aptresolve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

// DefaultKeyring holds the keys of the Debian archive, from package debian-archive-keyring.
const DefaultKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Arch is the one architecture of images.
const Arch = "amd64"

// Request is what to resolve, and against what.
type Request struct {
	Suite      string
	Components []string
	Sets       []pin.WantedSet
	Mirrors    Mirrors
	Keyring    string   // "" means DefaultKeyring
	Env        []string // proxy variables of the caller
	// SkipUpdates leaves out the updates and security suites; for archives that have none.
	SkipUpdates bool
}

// Resolve resolves all sets against one state of the archive. It takes seconds:
// the indexes are fetched anew, so that the result is what the archive has now.
func Resolve(ctx context.Context, req Request, report progress.Reporter) (pin.Debian, error) {
	if req.Keyring == "" {
		req.Keyring = DefaultKeyring
	}
	if _, err := os.Stat(req.Keyring); err != nil {
		return pin.Debian{}, diag.WithHint(fmt.Errorf("archive keyring: %w", err), "run make deps, or apt-get install debian-archive-keyring")
	}
	r, err := newRoot(req)
	if err != nil {
		return pin.Debian{}, err
	}
	defer r.remove()
	task := report.Start("package indexes of "+req.Suite, 0)
	err = r.update(ctx)
	task.Done("signature verified", err)
	if err != nil {
		return pin.Debian{}, err
	}
	return r.resolve(ctx, report)
}

func (r *root) resolve(ctx context.Context, report progress.Reporter) (pin.Debian, error) {
	out := pin.Debian{Suite: r.req.Suite, Arch: Arch, Components: r.req.Components}
	var err error
	if out.Releases, err = r.releases(); err != nil {
		return out, err
	}
	chosen := make([][]chosen, len(r.req.Sets))
	for i, set := range r.req.Sets {
		task := report.Start("packages of "+set.Name, 0)
		chosen[i], err = r.choose(ctx, set)
		task.Done(fmt.Sprintf("%d packages", len(chosen[i])), err)
		if err != nil {
			return out, err
		}
	}
	index, err := r.lookup(ctx, slices.Concat(chosen...))
	if err != nil {
		return out, err
	}
	for i, set := range r.req.Sets {
		s, err := assemble(set, chosen[i], index)
		if err != nil {
			return out, err
		}
		out.Sets = append(out.Sets, s)
	}
	slices.SortFunc(out.Sets, func(a, b pin.Set) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func assemble(set pin.WantedSet, list []chosen, index map[chosen]pin.Package) (pin.Set, error) {
	s := pin.Set{Name: set.Name, Wanted: slices.Sorted(slices.Values(set.Packages))}
	for _, c := range list {
		p, ok := index[c]
		if !ok {
			return s, fmt.Errorf("apt chose %s/%s, which no index of the archive lists with a SHA-256", c.archive, c.path)
		}
		s.Packages = append(s.Packages, p)
	}
	slices.SortFunc(s.Packages, func(a, b pin.Package) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}
