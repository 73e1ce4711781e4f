package persist

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// copyMissing copies from one directory to another what is not there, and leaves
// alone what is: owner and mode are kept, times are not. Paths in skip, absolute
// as in the table, are made as empty directories only.
func copyMissing(from, to, name string, skip map[string]bool) error {
	src, dst := filepath.Join(from, name), filepath.Join(to, name)
	info, err := os.Lstat(src)
	if err != nil {
		return err
	}
	if err := makeLike(src, dst, info); err != nil {
		return fmt.Errorf("copying %s: %w", name, err)
	}
	if !info.IsDir() || skip[name] {
		return nil
	}
	if now, err := os.Lstat(dst); err != nil || !now.IsDir() {
		return err // something else has taken the place of the directory: leave it
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyMissing(from, to, filepath.Join(name, e.Name()), skip); err != nil {
			return err
		}
	}
	return nil
}

// makeLike makes dst like src unless it exists.
func makeLike(src, dst string, info fs.FileInfo) error {
	if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case info.IsDir():
		if err := os.Mkdir(dst, 0o700); err != nil {
			return err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(src)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, dst); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		return copyFile(src, dst, info)
	default:
		return nil // sockets and device nodes belong to running programs
	}
	return adopt(dst, info)
}

// adopt gives a file the owner and mode of another. The owner first: changing it
// clears set-user-ID bits.
func adopt(path string, like fs.FileInfo) error {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		if err := os.Lchown(path, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if like.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	return os.Chmod(path, like.Mode())
}

func copyFile(src, dst string, info fs.FileInfo) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := dst + ".slipway-new"
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := adopt(tmp, info); err != nil {
		return err
	}
	return os.Rename(tmp, dst)
}
