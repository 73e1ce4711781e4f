package imagebuild

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cas"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/imagebuild/kernel"
	"github.com/slipway/slipway/internal/imagebuild/signkey"
	"github.com/slipway/slipway/internal/imagebuild/squash"
	"github.com/slipway/slipway/internal/plan"
	"github.com/slipway/slipway/internal/progress"
)

// Options say where and how to build.
type Options struct {
	Out      string // directory that receives the outputs
	Cache    *cas.Cache
	Key      signkey.Key
	Progress progress.Reporter
	Version  string // of this program, for the provenance
	Getenv   func(string) string
}

// Result is a finished build.
type Result struct {
	Dir       string
	Index     artifact.Index
	Unchanged bool // the outputs were there already, complete and of this plan
	// Absent are inputs that the image was made without. Images are container images
	// that it needs and does not bring; they are known after a build only.
	Absent []plan.Absent
	Images []string
}

// Lacks says what a cluster of this image would have to get from elsewhere.
func (r Result) Lacks() []string {
	var out []string
	for _, a := range r.Absent {
		out = append(out, fmt.Sprintf("%s %s (%s)", a.Name, a.Version, a.Why))
	}
	for _, image := range r.Images {
		out = append(out, "container image "+image)
	}
	return out
}

// builder carries what the steps of one build hand on to each other.
type builder struct {
	*Resolved
	Options

	tmp    string // work directory beside Out; becomes Out
	tree   kernel.Tree
	slot   squash.Slot
	layout disklayout.Layout
	paths  parts
	index  artifact.Index

	images  []string // container images that the payload needs
	missing []string // those of them that the image does not bring
}

// parts are the files of cached stages.
type parts struct{ rootfs, slot, initrd, installer, boot, payload, images string }

// Build makes the outputs of the plan in opts.Out. What is there is replaced at
// once and only by a complete build; what is not Slipway's is refused.
func (r *Resolved) Build(ctx context.Context, opts Options) (Result, error) {
	b := &builder{Resolved: r, Options: opts}
	release, err := b.lockOut()
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := b.sweep(); err != nil {
		return Result{}, err
	}
	if index, ok := b.unchanged(ctx); ok {
		return Result{Dir: b.Out, Index: index, Unchanged: true, Absent: b.Plan.Payload.Absent}, nil
	}
	if err := b.makeWorkDir(); err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(b.tmp)
	for _, step := range b.steps() {
		if err := step(ctx); err != nil {
			return Result{}, explainSpace(err, filepath.Dir(b.Out))
		}
	}
	return Result{Dir: b.Out, Index: b.index, Absent: b.Plan.Payload.Absent, Images: b.missing}, nil
}

// steps are the steps of a build in their order: each needs what the one before
// it made.
func (b *builder) steps() []func(context.Context) error {
	return []func(context.Context) error{
		b.fetch,       // everything from outside, so that what follows needs no network
		b.makePayload, // charts and manifests; an image that would lack container images ends here
		b.makeTree,    // packages and kernel, independent of each other
		b.makeSlot,    // needs all of these, and decides the slot's size and root hash
		b.makeDisk,    // needs the root hash for the boot entry
		b.packDisk,    // compressed and qcow2 forms of the disk
		b.addFiles,    // netboot files, seeds, payload, plan, bill of materials, provenance
		b.sign,        // the index binds all of them
		b.publish,     // the only step that touches the final name
	}
}

func (b *builder) makeTree(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.makeRootfs(ctx) })
	g.Go(func() error { return b.makeKernel(ctx) })
	g.Go(func() error { return b.makeBootFiles(ctx) })
	return g.Wait()
}

// task reports one piece of work that does not count bytes.
func (b *builder) task(name string, work func() (note string, err error)) error {
	t := b.Progress.Start(name, 0)
	note, err := work()
	t.Done(note, err)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// stage returns the directory of a cached stage, built when it is not there.
func (b *builder) stage(ctx context.Context, label, name string, key digest.Digest, build func(dir string) error) (string, error) {
	var dir string
	err := b.task(label, func() (note string, err error) {
		if _, ok := b.Cache.Stage(name, key); ok {
			note = "cached"
		}
		dir, err = b.Cache.BuildStage(ctx, name, key, build)
		return note, err
	})
	return dir, err
}
