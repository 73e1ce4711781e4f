// Package verify examines a finished build: the signature of its index, every
// byte of every file, and whether what the files hold agrees with the index and
// with each other.
//
// Wherever it can it uses other code than the maker did: its own reader of
// partition tables, qemu-img for qcow2, veritysetup for the verity tree.
package verify

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
)

// Options says what to verify.
type Options struct {
	Dir        string            // holds index.json
	TrustedKey ed25519.PublicKey // who must have signed
	Progress   progress.Reporter
}

// Problem is one thing that is wrong. File is relative to the directory.
type Problem struct {
	File string `json:"file"`
	What string `json:"what"`
}

// String is the problem on one line.
func (p Problem) String() string { return p.File + ": " + p.What }

// Report is what was found.
type Report struct {
	Dir      string        `json:"dir"`
	Name     string        `json:"name,omitempty"`
	Plan     digest.Digest `json:"plan,omitzero"`
	Signer   string        `json:"signer,omitempty"` // fingerprint of the trusted key, when it signed
	Files    int           `json:"files"`            // in the index
	Bytes    int64         `json:"bytes"`            // of these files
	Chunks   int           `json:"chunks"`
	Packages int           `json:"components"` // in the bill of materials
	Problems []Problem     `json:"problems"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// maxPerFile bounds how many problems of one file are listed.
const maxPerFile = 10

// Verify examines the build in o.Dir. What is wrong with the build is in the
// report; an error means that the examination itself could not be done.
func Verify(ctx context.Context, o Options) (Report, error) {
	if o.Progress == nil {
		o.Progress = progress.Nop{}
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return Report{}, noBuild(fmt.Errorf("verifying: %w", err))
	}
	defer root.Close()
	if absent(root, artifact.IndexName) && absent(root, artifact.SignatureName) {
		return Report{}, noBuild(fmt.Errorf("%s is no build: it has no %s", o.Dir, artifact.IndexName))
	}
	e := &examination{opt: o, root: root, report: Report{Dir: o.Dir}, found: newFindings()}
	err = e.run(ctx)
	e.report.Problems = e.found.sorted()
	if err != nil {
		return e.report, fmt.Errorf("verifying: %w", err)
	}
	return e.report, nil
}

// noBuild is the error for a directory that holds no build at all.
func noBuild(err error) error {
	return exit.With(exit.Usage, diag.WithHint(err, "name the output directory of imagebuild build"))
}

func absent(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// examination is one run of Verify.
type examination struct {
	opt    Options
	root   *os.Root
	index  artifact.Index
	report Report
	found  *findings
}

func (e *examination) run(ctx context.Context) error {
	if !e.readIndex() {
		return nil
	}
	usable, err := e.listing()
	if err != nil {
		return err
	}
	// Bytes first: each file on its own, two at a time.
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range e.index.Files {
		if usable[f.Name] {
			group.Go(func() error { return e.file(running, f) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// Then meaning, which looks at files that are known to be as they were made.
	for _, check := range []func(context.Context, map[string]bool) error{e.disk, e.qcow2, e.slot, e.documents, e.seeds, e.payload} {
		if err := check(ctx, usable); err != nil {
			return err
		}
	}
	return nil
}

// readIndex reads and checks the index and its signature; false means that there
// is no index to go on with.
func (e *examination) readIndex() bool {
	data, err := readSmall(e.root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		e.found.add(artifact.IndexName, "%s", reason(err))
		return false
	}
	e.signature(data)
	x, err := artifact.Decode(data)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			e.found.add(artifact.IndexName, "%s", strings.TrimSpace(line))
		}
		return false
	}
	e.index = x
	e.report.Name, e.report.Plan, e.report.Files, e.report.Chunks = x.Name, x.Plan, len(x.Files), len(x.Disk.Chunks)
	for _, f := range x.Files {
		e.report.Bytes += f.Size
	}
	return true
}

func (e *examination) signature(index []byte) {
	sig, err := readSmall(e.root, artifact.SignatureName, 1<<16)
	if err == nil {
		err = artifact.Verify(index, sig, e.opt.TrustedKey)
	}
	if err != nil {
		e.found.add(artifact.SignatureName, "%s", reason(err))
		return
	}
	e.report.Signer = artifact.Fingerprint(e.opt.TrustedKey)
}

// listing holds the directory against the index: what is missing, what is extra,
// what is no regular file or has another size. It returns the names of the files
// that can be read; a wrong size does not hinder that.
func (e *examination) listing() (map[string]bool, error) {
	known := map[string]artifact.File{}
	for _, f := range e.index.Files {
		known[f.Name] = f
	}
	usable := map[string]bool{}
	err := fs.WalkDir(e.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			e.found.add(name, "%s", reason(err))
			return nil
		}
		f, ok := known[name]
		switch {
		case d.IsDir() && !ok:
			if name != "." && !e.holdsFiles(name) {
				e.found.add(name, "directory is not part of the build")
				return fs.SkipDir
			}
		case name == artifact.IndexName || name == artifact.SignatureName:
		case !ok:
			e.found.add(name, "is not part of the build")
		case !d.Type().IsRegular():
			e.found.add(name, "is not a regular file")
		default:
			usable[name] = true
			e.size(f, d)
		}
		return nil
	})
	for _, f := range e.index.Files {
		if _, err := e.root.Lstat(f.Name); errors.Is(err, fs.ErrNotExist) {
			e.found.add(f.Name, "is missing")
		}
	}
	return usable, err
}

func (e *examination) size(f artifact.File, d fs.DirEntry) {
	info, err := d.Info()
	switch {
	case err != nil:
		e.found.add(f.Name, "%s", reason(err))
	case info.Size() != f.Size:
		e.found.add(f.Name, "has %d bytes, want %d", info.Size(), f.Size)
	}
}

func (e *examination) holdsFiles(dir string) bool {
	return slices.ContainsFunc(e.index.Files, func(f artifact.File) bool { return strings.HasPrefix(f.Name, dir+"/") })
}

// path is where a file of the build lies, for host programs.
func (e *examination) path(f artifact.File) string {
	return filepath.Join(e.opt.Dir, filepath.FromSlash(f.Name))
}

// one returns the only file of a role when it can be read.
func (e *examination) one(role artifact.Role, usable map[string]bool) (artifact.File, bool) {
	f, ok := e.index.One(role)
	return f, ok && usable[f.Name]
}

// reason is an error without the name of the file, which stands in front of it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		if errors.Is(err, fs.ErrNotExist) {
			return "is missing"
		}
		return p.Err.Error()
	}
	return err.Error()
}
