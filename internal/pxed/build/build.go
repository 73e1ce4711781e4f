// Package build holds a finished build that pxed serves: the directory that
// imagebuild wrote, verified against its signed index before a byte of it leaves.
//
// The verified files stay open. Whatever happens to their names afterwards, the
// bytes that are served are those that were hashed; a file that is written in
// place is noticed and no longer served.
package build

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/progress"
)

// Errors of Open that a caller answers differently.
var (
	ErrUnknown = errors.New("no such file in the build")
	ErrChanged = errors.New("file was changed after it was verified")
)

// Build is a verified build. It is safe for concurrent use until Close.
type Build struct {
	Index  artifact.Index
	Digest digest.Digest // of the index's bytes
	Key    string        // the public key that signed it, as a line of a .pub file

	held map[string]held
}

// File is a file of the build that may be served.
type File struct {
	Name   string
	Size   int64
	Digest digest.Digest
}

// held is an open, verified file and what it looked like then.
type held struct {
	File
	f    *os.File
	size int64
	time time.Time
}

// Open verifies the build in dir against key and keeps its files open. The index
// must be signed by key, and each file that is served must have the size and
// digest that the index gives.
func Open(ctx context.Context, dir string, key ed25519.PublicKey, p progress.Reporter) (*Build, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("opening build: %w", err), "make one with imagebuild build -p PROFILE -O "+dir)
	}
	defer root.Close()
	b := &Build{held: map[string]held{}}
	if err := b.load(ctx, root, key, p); err != nil {
		b.Close()
		return nil, fmt.Errorf("build in %s: %w", dir, err)
	}
	return b, nil
}

func (b *Build) load(ctx context.Context, root *os.Root, key ed25519.PublicKey, p progress.Reporter) error {
	if err := b.loadIndex(root, key); err != nil {
		return err
	}
	for _, f := range b.Index.Files {
		if !served(f.Role) {
			continue
		}
		if err := b.verify(ctx, root, File{f.Name, f.Size, f.Digest}, p); err != nil {
			return err
		}
	}
	return nil
}

// served says which files machines ask for. Seeds are not among them: they are
// handed out by ticket. Nor are the images that no installer reads.
func served(r artifact.Role) bool {
	switch r {
	case artifact.RoleKernel, artifact.RoleInitrd, artifact.RoleInstaller, artifact.RoleIPXE, artifact.RoleDiskZstd:
		return true
	default:
		return false
	}
}

func (b *Build) loadIndex(root *os.Root, key ed25519.PublicKey) error {
	index, err := b.hold(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return err
	}
	signature, err := b.hold(root, artifact.SignatureName, artifact.MaxIndexSize)
	if err != nil {
		return err
	}
	if err := artifact.Verify(index, signature, key); err != nil {
		return diag.WithHint(err, "name the public key of who built it with --key")
	}
	if b.Index, err = artifact.Decode(index); err != nil {
		return err
	}
	b.Digest = digest.Of(index)
	line, err := artifact.FormatKey(key, "")
	b.Key = strings.TrimSpace(line)
	return err
}

// hold reads a small file whole and keeps it open for serving.
func (b *Build) hold(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return data, b.keep(File{name, int64(len(data)), digest.Of(data)}, f)
}

// Time is the build's SOURCE_DATE_EPOCH, the time of all its files.
func (b *Build) Time() time.Time { return time.Unix(b.Index.Epoch, 0).UTC() }

// verify hashes a file and keeps it open.
func (b *Build) verify(ctx context.Context, root *os.Root, file File, p progress.Reporter) error {
	f, err := root.Open(file.Name)
	if err != nil {
		return err
	}
	task := p.Start("verify "+file.Name, file.Size)
	err = check(ctx, f, file, task)
	task.Done("", err)
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	return b.keep(file, f)
}

func check(ctx context.Context, f *os.File, want File, task progress.Task) error {
	h := digest.NewWriter(io.Discard)
	r := io.LimitReader(f, want.Size+1)
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n]) // never fails: there is only a hash behind it
		task.Add(int64(n))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			if h.Size() != want.Size {
				return fmt.Errorf("has not the %d bytes that the index gives", want.Size)
			}
			return digest.Check(want.Digest, h.Sum())
		case err != nil:
			return err
		}
	}
}

func (b *Build) keep(file File, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	b.held[file.Name] = held{file, f, st.Size(), st.ModTime()}
	return nil
}

// Open opens a file of the build by its name in the index, for one reader. The
// error wraps ErrUnknown or ErrChanged.
func (b *Build) Open(name string) (*os.File, File, error) {
	h, ok := b.held[name]
	if !ok {
		return nil, File{}, fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	// A second open file of the same inode, with an offset of its own; the name
	// may stand for another file by now.
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", h.f.Fd()))
	if err != nil {
		return nil, File{}, fmt.Errorf("opening %s: %w", name, err)
	}
	if st, err := f.Stat(); err != nil || st.Size() != h.size || !st.ModTime().Equal(h.time) {
		f.Close()
		return nil, File{}, fmt.Errorf("%s: %w", name, ErrChanged)
	}
	return f, h.File, nil
}

// Has reports whether the build has a file of that name to serve.
func (b *Build) Has(name string) bool {
	_, ok := b.held[name]
	return ok
}

// Close closes the files.
func (b *Build) Close() error {
	var errs []error
	for _, h := range b.held {
		errs = append(errs, h.f.Close())
	}
	return errors.Join(errs...)
}
