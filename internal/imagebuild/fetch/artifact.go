package fetch

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/imagebuild/fetch/gomod"
	"github.com/slipway/slipway/internal/pin"
	"github.com/slipway/slipway/internal/progress"
)

// Artifacts fetches the named artifacts of the lock, one after the other: they
// are few and large.
func (f Fetcher) Artifacts(ctx context.Context, lock *pin.Lock, names ...string) (Summary, error) {
	var total Summary
	run := f.ready()
	for _, name := range names {
		a := lock.Artifact(name)
		if a == nil {
			return total, diag.WithHint(fmt.Errorf("the lock has no artifact %q", name), run.repin())
		}
		if a.Unpinned != "" {
			return total, diag.WithHint(fmt.Errorf("artifact %s %s is not pinned: %s", a.Name, a.Version, a.Unpinned), run.repin()+" where its source can be reached")
		}
		if run.has(a) {
			total.Cached++
			continue
		}
		if err := run.artifact(ctx, a); err != nil {
			return total, err
		}
		total.Fetched++
		total.Bytes += a.Size
	}
	return total, nil
}

func (f *Fetcher) artifact(ctx context.Context, a *pin.Artifact) error {
	if err := f.Cache.Room(a.Size); err != nil {
		return err
	}
	task := f.Report.Start(a.Name+" "+a.Version, a.Size)
	var err error
	switch a.Kind {
	case pin.KindURL:
		err = f.download(ctx, item{name: a.Name + " " + a.Version, url: a.Source, digest: a.Digest, size: a.Size,
			moved: "upstream no longer has", gone: f.repin() + ", or choose another version in the profile"}, task)
		if err = f.gone.take(err); err == nil {
			err = f.gone.err()
		}
	case pin.KindGoModule:
		err = f.module(ctx, a, task)
	case pin.KindFile:
		err = f.file(ctx, a, task)
	case pin.KindImage:
		err = f.image(ctx, a, task)
	}
	task.Done("", err)
	return err
}

func (f *Fetcher) module(ctx context.Context, a *pin.Artifact, task progress.Task) error {
	m, err := gomod.Download(ctx, a.Source)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	if m.H1 != a.H1 {
		return diag.WithHint(fmt.Errorf("%s: %w: module %s has hash %s, the lock says %s", a.Name, digest.ErrMismatch, a.Source, m.H1, a.H1),
			"the module proxy gives another module than when it was pinned; look into it before you "+f.repin())
	}
	r := m.Open(ctx, a.Subdir)
	defer r.Close()
	if err := f.Cache.Put(ctx, a.Digest, a.Size, r); err != nil {
		return fmt.Errorf("%s: %s of module %s: %w", a.Name, a.Subdir, a.Source, err)
	}
	task.Add(a.Size)
	return nil
}

func (f *Fetcher) file(ctx context.Context, a *pin.Artifact, task progress.Task) error {
	name := f.local(a.Source)
	r, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	defer r.Close()
	if err := f.Cache.Put(ctx, a.Digest, a.Size, r); err != nil {
		return diag.WithHint(fmt.Errorf("%s: %s: %w", a.Name, name, err), "if the file was meant to change, "+f.repin())
	}
	task.Add(a.Size)
	return nil
}
