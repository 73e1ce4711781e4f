package imagebuild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/verify"
)

// workPrefix begins the names of work directories beside the output directory.
// A build that was killed leaves one behind; the next one removes it.
const workPrefix = ".slipway-build-"

// lockOut makes the parent of the output directory and takes the lock on builds
// in it. The lock dies with the process.
func (b *builder) lockOut() (release func(), err error) {
	if b.Out, err = filepath.Abs(b.Out); err != nil {
		return nil, err
	}
	if err := b.checkOut(); err != nil {
		return nil, err
	}
	parent := filepath.Dir(b.Out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("making the output directory: %w", err)
	}
	dir, err := os.Open(parent)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		return nil, diag.WithHint(fmt.Errorf("another build is writing into %s", parent), "wait for it, or choose another directory with -O")
	}
	return func() { dir.Close() }, nil
}

// checkOut refuses a directory that holds something else than an earlier build:
// publishing takes its place, and what is in it goes.
func (b *builder) checkOut() error {
	entries, err := os.ReadDir(b.Out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("output directory: %w", err))
	}
	foreign, err := foreignFile(b.Out)
	if err != nil || foreign == "" {
		return err
	}
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s holds %s, which no build made; it would be lost", b.Out, foreign),
		"move it elsewhere, or choose another directory with -O"))
}

// foreignFile is the first file in dir that its index does not name, "" when there
// is none. Without an index that can be read every file is foreign.
func foreignFile(dir string) (string, error) {
	own := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(dir, artifact.IndexName))
	if index, bad := artifact.Decode(text); err == nil && bad == nil {
		own[artifact.IndexName], own[artifact.SignatureName] = true, true
		for _, f := range index.Files {
			own[f.Name] = true
		}
	}
	foreign := ""
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err == nil && !own[filepath.ToSlash(name)] {
			foreign = name
			return filepath.SkipAll
		}
		return err
	})
	return foreign, err
}

// sweep removes what killed builds left beside the output. The lock on its parent
// is ours: whoever made it is gone.
func (b *builder) sweep() error {
	parent := filepath.Dir(b.Out)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
			return fmt.Errorf("removing what a killed build left: %w", err)
		}
	}
	return nil
}

// makeWorkDir makes a fresh directory on the same file system as the output.
func (b *builder) makeWorkDir() error {
	var err error
	if b.tmp, err = os.MkdirTemp(filepath.Dir(b.Out), workPrefix); err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	return os.Chmod(b.tmp, 0o755)
}

// publish flushes everything to disk and gives it the final name in one step.
func (b *builder) publish(ctx context.Context) error {
	if err := syncTree(b.tmp); err != nil {
		return fmt.Errorf("flushing outputs: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := unix.Renameat2(unix.AT_FDCWD, b.tmp, unix.AT_FDCWD, b.Out, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) { // nothing to exchange with
		err = os.Rename(b.tmp, b.Out)
	}
	if err != nil {
		return fmt.Errorf("giving the outputs their name: %w", err)
	}
	// After an exchange the work directory holds the earlier build.
	return errors.Join(os.RemoveAll(b.tmp), syncPath(filepath.Dir(b.Out)))
}

func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(p)
	})
}

func syncPath(p string) error {
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// unchanged reports whether the output directory holds a complete build of this
// plan by this key. It is verified like any other: a machine that was started on
// the raw image itself has changed it.
func (b *builder) unchanged(ctx context.Context) (artifact.Index, bool) {
	text, err := os.ReadFile(filepath.Join(b.Out, artifact.IndexName))
	if err != nil {
		return artifact.Index{}, false
	}
	index, err := artifact.Decode(text)
	if err != nil || index.Plan != b.Plan.Digest() {
		return artifact.Index{}, false
	}
	report, err := verify.Verify(ctx, verify.Options{Dir: b.Out, TrustedKey: b.Key.Public(), Progress: b.Progress})
	return index, err == nil && report.OK()
}
