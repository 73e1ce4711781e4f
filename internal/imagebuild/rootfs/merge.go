package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Merge copies the tar stream base to w without the entries for which drop says
// so, then each of the layers. A path of a layer replaces the one below it;
// directories merge, the lower one's mode stays. Times are cut off at epoch, so
// that no clock of the build host shows.
//
// replaced names the paths, without leading "./" and trailing "/", that a layer
// will bring: they are left out of the base.
//
// Every layer is read to its end or closed.
func Merge(w io.Writer, base io.Reader, epoch int64, drop func(string) bool, replaced map[string]bool, layers ...io.ReadCloser) error {
	defer func() {
		for _, l := range layers {
			l.Close()
		}
	}()
	m := merger{w: tar.NewWriter(w), latest: time.Unix(epoch, 0), dirs: map[string]bool{}}
	skip := func(name string) bool { return drop(name) || replaced[name] }
	if err := m.copy(base, skip); err != nil {
		return fmt.Errorf("merging the packages' files: %w", err)
	}
	for _, l := range layers {
		if err := m.copy(l, func(string) bool { return false }); err != nil {
			return fmt.Errorf("merging a layer: %w", err)
		}
	}
	return m.w.Close()
}

type merger struct {
	w      *tar.Writer
	latest time.Time
	dirs   map[string]bool // directories already written
}

func (m *merger) copy(r io.Reader, skip func(string) bool) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return drain(r)
		}
		if err != nil {
			return err
		}
		name := Clean(h.Name)
		if name == "." || skip(name) || m.seen(h, name) {
			continue
		}
		if err := m.parents(path.Dir(name), h.ModTime); err != nil {
			return err
		}
		if err := m.entry(h, name, tr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// seen notes a directory and reports whether it was written before.
func (m *merger) seen(h *tar.Header, name string) bool {
	if h.Typeflag != tar.TypeDir {
		return false
	}
	was := m.dirs[name]
	m.dirs[name] = true
	return was
}

// parents writes the directories above an entry that nothing has brought yet: a
// reader that has to invent them gives them to whoever it runs as.
func (m *merger) parents(dir string, at time.Time) error {
	if dir == "." || m.dirs[dir] {
		return nil
	}
	if err := m.parents(path.Dir(dir), at); err != nil {
		return err
	}
	m.dirs[dir] = true
	return m.entry(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: at}, dir, strings.NewReader(""))
}

func (m *merger) entry(h *tar.Header, name string, content io.Reader) error {
	h.Name = "./" + name
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if h.ModTime.After(m.latest) {
		h.ModTime = m.latest
	}
	// Whole seconds, no access or change time, no user names: what is left is
	// the same on every host.
	h.ModTime = h.ModTime.Truncate(time.Second)
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	h.Uname, h.Gname = "", ""
	h.Format = tar.FormatPAX
	content, err := trustPyc(h, content)
	if err != nil {
		return err
	}
	if err := m.w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(m.w, content)
	return err
}

// drain reads what follows the end marker, so that a writer at the other end of
// a pipe does not see it close early.
func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// Clean is the form of a tar entry's name that Merge compares by: relative,
// without "./", without a trailing slash.
func Clean(name string) string {
	return path.Clean(strings.TrimPrefix(path.Clean("/"+name), "/"))
}
