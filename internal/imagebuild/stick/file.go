package stick

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
)

// workPrefix begins the names of work directories. One that was left by a killed
// run is not locked any more, and the next run removes it.
const workPrefix = ".slipway-stick-"

// makeWorkDir makes the directory in which the stick is put together.
func (s *Stick) makeWorkDir() error {
	parent := s.opt.Temp
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	// Somebody else's sweep may come between making and locking it.
	var err error
	for range 10 {
		if s.work, err = os.MkdirTemp(parent, workPrefix); err != nil {
			return fmt.Errorf("making a work directory: %w", err)
		}
		if s.lock, err = os.Open(s.work); err != nil {
			continue
		}
		err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			_, err = os.Stat(s.work)
		}
		if err == nil {
			return nil
		}
		s.lock.Close()
	}
	return fmt.Errorf("locking the work directory: %w", err)
}

// sweep removes what killed runs left. What it cannot remove does no harm.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		dir, err := os.Open(filepath.Join(parent, e.Name()))
		if err != nil {
			continue
		}
		if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir.Name())
		}
		dir.Close()
	}
}

// CheckFile refuses a file that must not be replaced.
func CheckFile(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s is there and is not a file", path), "choose another -O; a stick is named with --device"))
	case !force:
		return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("%s is there already", path), "choose another -O, or give --force"))
	}
	return nil
}

// Save puts the stick into a file, which appears when it is complete. Options.Temp
// must be its directory.
func (s *Stick) Save(ctx context.Context, path string, p progress.Reporter) error {
	if err := s.Check(ctx, p); err != nil {
		return err
	}
	f, err := os.Open(s.path(stickName))
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
