// Package dirlock lets one process at a time have the directory of a ledger.
package dirlock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
)

// HeldError says that another process has the directory.
type HeldError struct{ By string }

func (e *HeldError) Error() string { return "the ledger is in use by " + e.By }

// Take makes the directory and locks it for this process. The lock is the
// kernel's and dies with the process, whatever kills it.
func Take(dir string, now time.Time) (*os.File, error) {
	if dir == "" {
		return nil, errors.New("no directory is given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // whoever reads it can write the cluster's future
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, inUse(f)
		}
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := fmt.Fprintf(f, "process %d since %s\n", os.Getpid(), now.UTC().Format(time.RFC3339)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func inUse(f *os.File) error {
	holder, err := io.ReadAll(io.LimitReader(f, 200))
	who := strings.TrimSpace(string(holder))
	if err != nil || who == "" {
		who = "another process"
	}
	return diag.WithHint(&HeldError{who}, "a running pxed has it: ask that one, or stop it first")
}
