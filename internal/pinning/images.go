package pinning

import (
	"context"
	"os"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/pin"
)

// images adds the container images that the pinned charts and manifests need, as far
// as no archive of this machine has them. What a chart asks for depends on its
// version and its values, so it is rendered to find out.
func (o *Options) images(ctx context.Context, old, lock *pin.Lock, res *Result) error {
	needs, err := o.needs(ctx, lock)
	if err != nil {
		return err
	}
	have, err := o.inArchive(ctx, lock)
	if err != nil {
		return err
	}
	f := o.fetcher()
	for _, n := range needs {
		if have[n.Image] {
			continue
		}
		a := pin.Artifact{Name: n.Image, Version: tag(n.Image), For: n.For, Kind: pin.KindImage, Source: n.Image}
		if o.Cluster.Sources.From == cluster.OriginGoModule {
			a.Unpinned = "the profile takes its inputs from Go modules, and none has it; sources.files.images can name an archive of images"
		}
		a, err := o.artifact(ctx, f, a, old)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.Unpinned != "" {
			res.Unpinned = append(res.Unpinned, unpinned(a, err))
		}
		lock.Artifacts = append(lock.Artifacts, a)
	}
	return nil
}

// needs renders what is pinned.
func (o *Options) needs(ctx context.Context, lock *pin.Lock) ([]bundle.Need, error) {
	in := bundle.Inputs{}
	f := o.fetcher()
	for _, a := range lock.Artifacts {
		if a.Unpinned != "" || !bundle.Takes(a) {
			continue
		}
		if _, err := f.Artifacts(ctx, lock, a.Name); err != nil { // pinned before, and not in this cache
			return nil, err
		}
		in[a.Name] = o.Cache.Path(a.Digest)
	}
	dir, err := os.MkdirTemp("", "slipway-pin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := bundle.Make(ctx, in, dir); err != nil {
		return nil, err
	}
	return bundle.Needs(dir, *o.Cluster)
}

// inArchive are the images of the archive that the profile names, if it is there.
func (o *Options) inArchive(ctx context.Context, lock *pin.Lock) (map[string]bool, error) {
	a := lock.Artifact(pin.ArtifactImages)
	if a == nil || a.Unpinned != "" {
		return nil, nil
	}
	names, err := bundle.Held(ctx, o.Cache.Path(a.Digest))
	have := map[string]bool{}
	for _, n := range names {
		have[n] = true
	}
	return have, err
}

// tag is the tag or digest of a full reference.
func tag(ref string) string {
	if _, d, ok := strings.Cut(ref, "@"); ok {
		return d
	}
	return ref[strings.LastIndex(ref, ":")+1:]
}
