// Package runlock lets one run at a time change a cluster. The lock is the kernel's
// (flock(2)) and dies with its process, whatever kills it; the file beside it only
// says who has it and is never believed on its own. On a directory that machines
// share by NFS it holds between them too.
package runlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Holder says who runs.
type Holder struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Command string    `json:"command"` // as it was typed
}

// Self describes this process.
func Self(now time.Time) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return Holder{Host: host, PID: os.Getpid(), Since: now.UTC().Truncate(time.Second), Command: strings.Join(os.Args, " ")}
}

// String names the holder for people.
func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d on %s since %s (%s)", h.PID, h.Host, h.Since.UTC().Format(time.RFC3339), h.Command)
}

// HeldError says that somebody else runs.
type HeldError struct{ Holder Holder }

func (e *HeldError) Error() string {
	return "another run is changing this cluster: " + e.Holder.String()
}

// Lock is held until Release, or until the process ends.
type Lock struct{ file *os.File }

// Take locks the file at path, which is made when absent, for the holder. When
// another process has it, the error is a HeldError.
func Take(path string, h Holder) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking this run: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking this run: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = held(f)
	case err == nil:
		err = write(f, h)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

func held(f *os.File) error {
	var h Holder
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil || json.Unmarshal(text, &h) != nil {
		h = Holder{} // it is being written right now
	}
	return exit.With(exit.Refused, diag.WithHint(&HeldError{h}, "wait until it has ended, or end it; a lock that nobody holds is never in the way"))
}

func write(f *os.File, h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("locking this run: %w", err)
	}
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil {
		return fmt.Errorf("locking this run: %w", err)
	}
	return nil
}

// Release lets the next run begin. The file stays: who removed it could remove one
// that another process has locked in the meantime.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
