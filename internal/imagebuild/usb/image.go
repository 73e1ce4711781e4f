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
	"github.com/slipway/slipway/internal/progress"
)

// Image is the compressed disk image of a build whose signature has been checked.
type Image struct {
	Index artifact.Index
	file  *os.File
}

// OpenImage opens the image of the build in dir. Close it.
func OpenImage(dir string, key ed25519.PublicKey) (*Image, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening build: %w", err)
	}
	defer root.Close()
	index, err := readLimited(root, artifact.IndexName, artifact.MaxIndexSize)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("opening build: %w", err), "name the output directory of imagebuild build")
	}
	sig, err := readLimited(root, artifact.SignatureName, 1<<16)
	if err == nil {
		err = artifact.Verify(index, sig, key)
	}
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("%s: %w", artifact.SignatureName, err), "name the public key of who built it with --key")
	}
	img := &Image{}
	if img.Index, err = artifact.Decode(index); err != nil {
		return nil, err
	}
	f, _ := img.Index.One(artifact.RoleDiskZstd) // Decode refuses an index without one
	if img.file, err = root.Open(f.Name); err != nil {
		return nil, fmt.Errorf("opening image: %w", err)
	}
	return img, nil
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

// each calls do for every chunk of the image, checked, in order.
func (m *Image) each(ctx context.Context, do func(unpack.Chunk) error) error {
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

// Check reads the whole image once, so that a damaged one is found before
// anything on the device is lost.
func (m *Image) Check(ctx context.Context, p progress.Reporter) error {
	task := p.Start("check image", m.Index.Disk.Size)
	err := m.each(ctx, func(c unpack.Chunk) error {
		task.Add(c.Length)
		return nil
	})
	task.Done("", err)
	if err != nil {
		return fmt.Errorf("checking image: %w", err)
	}
	return nil
}
