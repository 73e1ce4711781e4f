package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch/registry"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

// pinImage fixes a tag: the manifest for linux/amd64 is kept, its layers are fetched
// when they are needed. Trust in a tag rests on TLS at this moment.
func (f *Fetcher) pinImage(ctx context.Context, source string) (digest.Digest, int64, error) {
	ref, err := registry.Parse(source)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	data, err := registry.Client{HTTP: f.Client}.Manifest(ctx, ref)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	m, err := registry.Decode(data)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	d, n, err := f.Cache.Add(ctx, bytes.NewReader(data))
	return d, m.Size(n), err
}

// has reports whether all of an artifact is in the cache.
func (f *Fetcher) has(a *pin.Artifact) bool {
	if a.Kind != pin.KindImage || !f.Cache.Has(a.Digest) {
		return f.Cache.Has(a.Digest)
	}
	m, _, err := ImageManifest(f.Cache, a.Digest)
	if err != nil {
		return false
	}
	for _, b := range m.Blobs() {
		if !f.Cache.Has(b.Digest) {
			return false
		}
	}
	return true
}

// ImageManifest reads the manifest of an image from the cache, and its size in bytes.
func ImageManifest(cache *cas.Cache, d digest.Digest) (registry.Manifest, int64, error) {
	r, err := cache.Open(d)
	if err != nil {
		return registry.Manifest{}, 0, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return registry.Manifest{}, 0, err
	}
	m, err := registry.Decode(data)
	return m, int64(len(data)), err
}

// image brings the manifest that was pinned and every blob that it names. Blobs that
// another image has brought are not fetched again.
func (f *Fetcher) image(ctx context.Context, a *pin.Artifact, task progress.Task) error {
	ref, err := registry.Parse(a.Source)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	c := registry.Client{HTTP: f.Client}
	if !f.Cache.Has(a.Digest) {
		pinned := ref
		pinned.Tag = a.Digest.String()
		data, err := c.Manifest(ctx, pinned)
		if err == nil {
			err = f.Cache.Put(ctx, a.Digest, int64(len(data)), bytes.NewReader(data))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	m, n, err := ImageManifest(f.Cache, a.Digest)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	task.Add(n)
	for _, b := range m.Blobs() {
		if err := f.blob(ctx, c, ref, a, b, task); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fetcher) blob(ctx context.Context, c registry.Client, ref registry.Reference, a *pin.Artifact, b registry.Descriptor, task progress.Task) error {
	if f.Cache.Has(b.Digest) {
		task.Add(b.Size)
		return nil
	}
	address, authorization, err := c.Blob(ctx, ref, b.Digest)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return f.download(ctx, item{
		name: a.Name, url: address, digest: b.Digest, size: b.Size, authorization: authorization,
		moved: "the registry no longer has", gone: f.repin() + ", or choose another version in the profile",
	}, task)
}
