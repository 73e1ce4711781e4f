package aptresolve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/hosttool"
	"github.com/slipway/slipway/internal/pin"
)

// chosen is a package file that apt decided for.
type chosen struct {
	archive string
	path    string // below the archive's base, not escaped
}

// choose asks apt which files make up a set.
func (r *root) choose(ctx context.Context, set pin.WantedSet) ([]chosen, error) {
	if set.Closure {
		return r.printURIs(ctx, "install", append([]string{"?essential"}, set.Packages...))
	}
	var out []chosen
	for _, name := range set.Packages {
		list, err := r.single(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// single is one package without its dependencies. A kernel's meta package
// stands for the kernel that it depends on.
func (r *root) single(ctx context.Context, name string) ([]chosen, error) {
	if !pin.IsKernelMeta(name) {
		return r.printURIs(ctx, "download", []string{name})
	}
	list, err := r.printURIs(ctx, "install", []string{name})
	if err != nil {
		return nil, err
	}
	var kernels []chosen
	for _, c := range list {
		pkg, _, _ := strings.Cut(path.Base(c.path), "_")
		if strings.HasPrefix(pkg, "linux-image-") && !pin.IsKernelMeta(pkg) {
			kernels = append(kernels, c)
		}
	}
	if len(kernels) != 1 {
		return nil, fmt.Errorf("%s depends on %d kernel images, want exactly one", name, len(kernels))
	}
	return kernels, nil
}

func (r *root) printURIs(ctx context.Context, verb string, names []string) ([]chosen, error) {
	args := append([]string{"-q", "-y", "--print-uris", "--no-install-recommends", verb, "--"}, names...)
	out, said, err := r.run(ctx, "apt-get", args...)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, hosttool.ErrMissing) {
			return nil, err
		}
		return nil, r.explainInstall(ctx, out, said, err)
	}
	return r.parseURIs(out)
}

// parseURIs reads apt's lines: 'URI' filename size hash. The hash is MD5 for old
// readers' sake, so digests come from the verified index instead.
func (r *root) parseURIs(out []byte) ([]chosen, error) {
	var list []chosen
	for line := range bytes.Lines(out) {
		rest, ok := bytes.CutPrefix(line, []byte("'"))
		if !ok {
			continue // "Reading package lists..."
		}
		uri, _, _ := bytes.Cut(rest, []byte("'"))
		c, err := r.locate(string(uri))
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, diag.WithHint(errors.New("apt chose no package at all"), "see whether apt-get --print-uris works on this machine")
	}
	return list, nil
}

// locate splits a URI of apt's into the archive and the path in it.
func (r *root) locate(uri string) (chosen, error) {
	for _, archive := range []string{pin.ArchiveSecurity, pin.ArchiveDebian} {
		if rest, ok := strings.CutPrefix(uri, r.req.Mirrors.Base(archive)+"/"); ok {
			p, err := url.PathUnescape(rest)
			if err != nil {
				return chosen{}, fmt.Errorf("apt's URI %q: %w", uri, err)
			}
			return chosen{archive: archive, path: p}, nil
		}
	}
	return chosen{}, fmt.Errorf("apt's URI %q is in no archive of ours", uri)
}
