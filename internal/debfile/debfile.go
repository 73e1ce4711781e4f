// Package debfile reads the files inside a Debian package without installing it.
package debfile

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/hosttool"
)

// Walk calls visit for each regular file of the package, in the package's order.
// name is relative, without a leading "./"; content ends with the file.
func Walk(ctx context.Context, deb string, visit func(name string, content io.Reader) error) error {
	r, w := io.Pipe()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := hosttool.Run(ctx, hosttool.Cmd{Name: "dpkg-deb", Args: []string{"--fsys-tarfile", deb}, Stdout: w})
		w.CloseWithError(err)
		return err
	})
	g.Go(func() error {
		err := each(tar.NewReader(r), visit)
		if err == nil {
			_, err = io.Copy(io.Discard, r) // the padding after the end marker
		}
		r.CloseWithError(err)
		return err
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("reading package %s: %w", filepath.Base(deb), err)
	}
	return nil
}

func each(r *tar.Reader, visit func(string, io.Reader) error) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := visit(path.Clean("/" + h.Name)[1:], r); err != nil {
			return err
		}
	}
}

// Extract copies files of the package: wanted maps a path inside it to the path
// to write. A wanted file that the package does not have is an error.
func Extract(ctx context.Context, deb string, wanted map[string]string) error {
	missing := map[string]bool{}
	for name := range wanted {
		missing[name] = true
	}
	err := Walk(ctx, deb, func(name string, content io.Reader) error {
		dst, ok := wanted[name]
		if !ok {
			return nil
		}
		delete(missing, name)
		return Write(dst, content)
	})
	if err != nil {
		return err
	}
	for name := range missing {
		return fmt.Errorf("package %s holds no %s", filepath.Base(deb), name)
	}
	return nil
}

// Write makes a new file, mode 0644, and the directories above it.
func Write(name string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
