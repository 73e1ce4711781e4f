package rootfs

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/slipway/slipway/internal/fstree"
)

// Paths is the set of paths of a tree that are not directories, in the form that
// Merge wants for what a layer replaces.
func Paths(t fstree.Tree) map[string]bool {
	out := map[string]bool{}
	for e := range t.All() {
		if !e.Mode.IsDir() {
			out[e.Path] = true
		}
	}
	return out
}

// TreeLayer is a tree as a tar stream, owned by root, with all times at epoch.
func TreeLayer(t fstree.Tree, epoch int64) io.ReadCloser {
	return stream(func(w *tar.Writer) error {
		for e := range t.All() {
			if err := writeEntry(w, e, epoch); err != nil {
				return fmt.Errorf("%s: %w", e.Path, err)
			}
		}
		return nil
	})
}

func writeEntry(w *tar.Writer, e fstree.Entry, epoch int64) error {
	h := header(e.Path, e.Mode, epoch)
	switch {
	case e.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case e.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
	default:
		h.Size = int64(len(e.Content))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(e.Content)
	return err
}

// DirLayer is the directory dir of this host as a tar stream below prefix: regular
// files and directories only, owned by root, modes 0644 and 0755, times at epoch.
func DirLayer(dir, prefix string, epoch int64) io.ReadCloser {
	return stream(func(w *tar.Writer) error {
		return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			name := path.Join(prefix, filepath.ToSlash(rel))
			if d.IsDir() {
				h := header(name+"/", 0o755, epoch)
				h.Typeflag = tar.TypeDir
				return w.WriteHeader(h)
			}
			return writeFile(w, name, p, 0o644, epoch)
		})
	})
}

// FileLayer is one file of this host as a tar stream.
func FileLayer(file, name string, perm fs.FileMode, epoch int64) io.ReadCloser {
	return stream(func(w *tar.Writer) error { return writeFile(w, name, file, perm, epoch) })
}

func writeFile(w *tar.Writer, name, file string, perm fs.FileMode, epoch int64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	h := header(name, perm, epoch)
	h.Size = st.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

func header(name string, mode fs.FileMode, epoch int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), ModTime: time.Unix(epoch, 0)}
}

// stream runs write in the background and returns its output. A reader that
// stops early leaves the writer with a closed pipe, not with a leak.
func stream(write func(*tar.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		err := write(tw)
		if err == nil {
			err = tw.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}
