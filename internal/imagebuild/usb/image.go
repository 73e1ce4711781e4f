package usb

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/artifact/unpack"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
)

// Content is what is put onto a stick: a whole disk, partition table included.
type Content interface {
	// Disk describes it: size, sectors, partitions, and the length of its chunks,
	// which is a megabyte at least.
	Disk() artifact.Disk
	// Check finds what is wrong with it, before anything on the device is lost.
	Check(ctx context.Context, p progress.Reporter) error
	// Each calls do for every chunk in order, without gaps.
	Each(ctx context.Context, do func(unpack.Chunk) error) error
}

// Image is the compressed disk image of a build whose signature has been checked.
type Image struct {
	Index  artifact.Index
	Digest digest.Digest // of the index's bytes
	file   *os.File
}

// OpenImage opens the image of the build in dir. Close it.
func OpenImage(dir string, key ed25519.PublicKey) (*Image, error) {
	root, err := openBuild(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	index, err := readIndex(root)
	if err != nil {
		return nil, err
	}
	sig, err := readLimited(root, artifact.SignatureName, 1<<16)
	if err == nil {
		err = artifact.Verify(index, sig, key)
	}
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("%s: %w", artifact.SignatureName, err), "name the public key of who built it with --key")
	}
	img := &Image{Digest: digest.Of(index)}
	if img.Index, err = artifact.Decode(index); err != nil {
		return nil, err
	}
	f, _ := img.Index.One(artifact.RoleDiskZstd) // Decode refuses an index without one
	if img.file, err = root.Open(f.Name); err != nil {
		return nil, fmt.Errorf("opening image: %w", err)
	}
	return img, nil
}

// DiskOf describes the disk image of the build in dir, for a look at what it could
// be written to. Nothing is verified.
func DiskOf(dir string) (artifact.Disk, error) {
	root, err := openBuild(dir)
	if err != nil {
		return artifact.Disk{}, err
	}
	defer root.Close()
	data, err := readIndex(root)
	if err != nil {
		return artifact.Disk{}, err
	}
	index, err := artifact.Decode(data)
	return index.Disk, err
}

// notBuild is the hint for a directory that holds no build.
const notBuild = "name the output directory of imagebuild build"

func openBuild(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("opening build: %w", err), notBuild))
	}
	return root, nil
}

func readIndex(root *os.Root) ([]byte, error) {
	index, err := readLimited(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("opening build: %w", err), notBuild))
	}
	return index, nil
}

func readLimited(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// Close closes the image.
func (m *Image) Close() error { return m.file.Close() }

// Disk implements Content.
func (m *Image) Disk() artifact.Disk { return m.Index.Disk }

// Each implements Content: it hands on nothing that it has not checked.
func (m *Image) Each(ctx context.Context, do func(unpack.Chunk) error) error {
	r, err := unpack.NewReader(io.NewSectionReader(m.file, 0, 1<<62), m.Index.Disk)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(c)
		}
		if err != nil {
			return err
		}
	}
}

// Check implements Content: it reads the whole image once.
func (m *Image) Check(ctx context.Context, p progress.Reporter) error {
	task := p.Start("check image", m.Index.Disk.Size)
	err := m.Each(ctx, func(c unpack.Chunk) error {
		task.Add(c.Length)
		return nil
	})
	task.Done("", err)
	if err != nil {
		return fmt.Errorf("checking image: %w", err)
	}
	return nil
}
