package imagebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/fstree"
	"github.com/slipway/slipway/internal/imagebuild/bundle"
	"github.com/slipway/slipway/internal/imagebuild/fetch"
	"github.com/slipway/slipway/internal/imagebuild/ociarchive"
	"github.com/slipway/slipway/internal/imagebuild/rootfs"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/imageset"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/plan"
)

// Where the payload lies in a slot.
const (
	K3sPath      = "usr/bin/k3s"
	chartsDir    = "usr/share/slipway/charts"
	manifestsDir = "usr/share/slipway/manifests"
	imagesDir    = "usr/share/slipway/images"
)

// payloadDir is where the payload lies in the output directory.
const payloadDir = "payload"

// planPayload sorts the lock's artifacts into those that are pinned and those that
// the image will lack.
func (r *Resolved) planPayload() (plan.Payload, error) {
	p := plan.Payload{Inputs: []plan.Input{}, Absent: []plan.Absent{}}
	for _, a := range r.Lock.Artifacts {
		if a.Unpinned != "" {
			p.Absent = append(p.Absent, plan.Absent{Name: a.Name, Version: a.Version, Why: a.Unpinned})
			continue
		}
		p.Inputs = append(p.Inputs, plan.Input{Name: a.Name, Version: a.Version, Kind: string(a.Kind), Size: a.Size, Digest: a.Digest})
	}
	values, err := json.Marshal([]any{ciliumvalues.Values(r.Cluster), longhornvalues.Values(r.Cluster)})
	if err != nil {
		return p, fmt.Errorf("encoding the charts' values: %w", err)
	}
	p.Values = digest.Of(values)
	return p, nil
}

// makePayload makes charts and manifests, and holds what they need against what the
// image brings.
func (b *builder) makePayload(ctx context.Context) error {
	dir, err := b.stage(ctx, "making the payload", "payload", b.Plan.PayloadKey(), func(dir string) error {
		in := bundle.Inputs{}
		for _, i := range b.Plan.Payload.Inputs {
			in[i.Name] = b.Cache.Path(i.Digest)
		}
		return bundle.Make(ctx, in, dir)
	})
	if err != nil {
		return err
	}
	b.paths.payload = dir
	if err := b.task("checking container images", func() (string, error) { return b.checkImages(ctx) }); err != nil {
		return err
	}
	return b.makeImages(ctx)
}

// imagesTar is the archive of the images that are pinned one by one.
const imagesTar = "registries.tar"

// makeImages puts those images into one archive.
func (b *builder) makeImages(ctx context.Context) error {
	var list []ociarchive.Image
	for _, in := range b.Plan.Payload.Inputs {
		if in.Kind != string(pin.KindImage) {
			continue
		}
		m, size, err := fetch.ImageManifest(b.Cache, in.Digest)
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		image := ociarchive.Image{Name: in.Name, MediaType: m.MediaType, Manifest: in.Digest, Size: size, Blobs: map[digest.Digest]int64{}}
		for _, blob := range m.Blobs() {
			image.Blobs[blob.Digest] = blob.Size
		}
		list = append(list, image)
	}
	if len(list) == 0 {
		return nil
	}
	dir, err := b.stage(ctx, "packing container images", "images", b.Plan.PayloadKey(), func(dir string) error {
		return writeFile(filepath.Join(dir, imagesTar), func(w io.Writer) error {
			return ociarchive.Write(w, list, func(d digest.Digest) (io.ReadCloser, error) { return b.Cache.Open(d) })
		})
	})
	b.paths.images = filepath.Join(dir, imagesTar)
	return err
}

// checkImages finds the images that a node would have to get from elsewhere.
func (b *builder) checkImages(ctx context.Context) (note string, err error) {
	needs, err := bundle.Needs(b.paths.payload, b.Cluster)
	if err != nil {
		return "", err
	}
	for _, n := range needs {
		b.images = append(b.images, n.Image)
	}
	held, err := b.heldImages(ctx)
	if err != nil {
		return "", err
	}
	missing := imageset.Missing(b.images, held)
	if b.missing, err = lost(missing, b.Plan.Payload.Absent, b.pinHint()); err != nil {
		return "", err
	}
	if len(missing) > 0 {
		return fmt.Sprintf("%d of %d are not in the image", len(missing), len(b.images)), nil
	}
	return fmt.Sprintf("all %d are in the image", len(b.images)), nil
}

// heldImages are those of the archives, and those that are pinned one by one.
func (b *builder) heldImages(ctx context.Context) ([]string, error) {
	var out []string
	for _, in := range b.Plan.Payload.Inputs {
		switch {
		case in.Kind == string(pin.KindImage):
			out = append(out, in.Name)
		case isArchive(in.Name):
			names, err := bundle.Held(ctx, b.Cache.Path(in.Digest))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", in.Name, err)
			}
			out = append(out, names...)
		}
	}
	return out, nil
}

// isArchive reports whether an artifact is an archive of container images.
func isArchive(name string) bool { return name == pin.ArtifactK3sImages || name == pin.ArtifactImages }

// lost refuses a build whose lock promises all images and does not have them. What
// the lock itself calls unpinned is said with it; where the archive of all images is
// not there, nothing is promised, and what is lost comes back.
func lost(missing []string, absent []plan.Absent, hint string) ([]string, error) {
	said := func(name string) bool {
		return slices.ContainsFunc(absent, func(a plan.Absent) bool { return a.Name == name })
	}
	out := slices.DeleteFunc(slices.Clone(missing), said)
	if len(out) == 0 || said(pin.ArtifactImages) {
		return out, nil
	}
	return nil, diag.WithHint(fmt.Errorf("container images that the charts and manifests need are in no input: %s", strings.Join(out, ", ")), hint)
}

// payloadLayers are the payload as layers of the root file system.
func (b *builder) payloadLayers() ([]io.ReadCloser, error) {
	var out []io.ReadCloser
	epoch := b.Plan.Epoch
	files, err := payloadFiles(b.paths.payload)
	if err != nil {
		return out, err
	}
	for _, name := range files {
		dir := manifestsDir
		if strings.HasSuffix(name, ".tgz") {
			dir = chartsDir
		}
		out = append(out, rootfs.FileLayer(filepath.Join(b.paths.payload, name), path.Join(dir, name), 0o644, epoch))
	}
	for _, in := range b.Plan.Payload.Inputs {
		file := b.Cache.Path(in.Digest)
		switch {
		case in.Name == pin.ArtifactK3s:
			out = append(out, rootfs.FileLayer(file, K3sPath, 0o755, epoch))
		case isArchive(in.Name):
			extension, err := bundle.Extension(file)
			if err != nil {
				return out, fmt.Errorf("%s: %w", in.Name, err)
			}
			out = append(out, rootfs.FileLayer(file, path.Join(imagesDir, in.Name+extension), 0o644, epoch))
		}
	}
	if b.paths.images != "" {
		out = append(out, rootfs.FileLayer(b.paths.images, path.Join(imagesDir, imagesTar), 0o644, epoch))
	}
	links, err := b.k3sLinks()
	return append(out, rootfs.TreeLayer(links, epoch)), err
}

// k3sLinks are the names under which k3s is other programs.
func (b *builder) k3sLinks() (fstree.Tree, error) {
	if _, ok := b.Plan.Payload.Has(pin.ArtifactK3s); !ok {
		return fstree.Tree{}, nil
	}
	return fstree.New(fstree.Symlink("usr/bin/kubectl", "k3s"), fstree.Symlink("usr/bin/crictl", "k3s"), fstree.Symlink("usr/bin/ctr", "k3s"))
}

// payloadFiles are the names of the files in a stage of the payload, sorted.
func payloadFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// addPayload adds to the outputs what bootstrap installs, and the list of the
// container images that it needs.
func (b *builder) addPayload() error {
	files, err := payloadFiles(b.paths.payload)
	if err != nil {
		return err
	}
	for _, name := range files {
		out := path.Join(payloadDir, name)
		if err := errors.Join(copyFile(filepath.Join(b.paths.payload, name), b.path(out)), b.enter(out, artifact.RolePayload, "")); err != nil {
			return fmt.Errorf("adding %s: %w", out, err)
		}
	}
	list := strings.Join(b.images, "\n")
	if list != "" {
		list += "\n"
	}
	return b.add(path.Join(payloadDir, bundle.Images), artifact.RolePayload, "", []byte(list))
}
