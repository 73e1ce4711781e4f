package cas

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the file's lock without waiting. Locks of flock(2) end with the
// process that holds them, whatever kills it, and unlike process ids they are
// never taken for those of another, later process.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// held reports whether err of lock means that another one has it.
func held(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// graceAge is how old an unlocked temporary file must be to count as left
// behind: between making and locking it there is a moment.
const graceAge = time.Minute

// sweep removes temporary files whose makers are gone. Downloads under way stay:
// the next run goes on with them.
func (c *Cache) sweep() error {
	dir := filepath.Join(c.dir, "tmp")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("opening cache: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < graceAge {
			continue // gone meanwhile, or too young
		}
		if err := sweepOne(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("cleaning cache: %w", err)
		}
	}
	return nil
}

func sweepOne(name string) error {
	f, err := os.Open(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	defer f.Close()
	if err := lock(f); err != nil {
		if held(err) {
			return nil
		}
		return err
	}
	return os.RemoveAll(name)
}
