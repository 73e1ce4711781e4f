package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Root is where the parts of the root file system are while it is being built.
type Root struct {
	Slot    string // the read-only system, mounted; the new root is built on it
	State   string // the state file system, mounted
	Scratch string // directory on a tmpfs for upper layers; it must outlive the boot
}

// Populate brings the directories that live on state up to the slot: what the
// slot has there and state has not is copied. It does so on first boot and when
// the slot changed, and reports whether it did.
func (r Root) Populate(rootHash string) (bool, error) {
	ref := filepath.Join(r.State, slotRef)
	if last, err := os.ReadFile(ref); err == nil && strings.TrimSpace(string(last)) == rootHash {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Join(r.State, metaDir), 0o700); err != nil {
		return false, fmt.Errorf("preparing state: %w", err)
	}
	for _, e := range Table() {
		if e.Kind != State {
			continue
		}
		if err := r.populate(e); err != nil {
			return false, fmt.Errorf("preparing %s on state: %w", e.Path, err)
		}
	}
	// The note is written last: an interrupted copy is done again.
	if err := renameio.WriteFile(ref, []byte(rootHash+"\n"), 0o600); err != nil {
		return false, fmt.Errorf("noting the slot on state: %w", err)
	}
	return true, nil
}

func (r Root) populate(e Entry) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Join(r.State, e.Path)), 0o755); err != nil {
		return err
	}
	err := copyMissing(r.Slot, r.State, e.Path, ownContent())
	if errors.Is(err, fs.ErrNotExist) {
		// The slot has no such directory.
		dir := filepath.Join(r.State, e.Path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.Chmod(dir, fs.FileMode(e.Mode))
	}
	return err
}

// ownContent are the directories whose content is not copied to state because
// something else is mounted there.
func ownContent() map[string]bool {
	skip := map[string]bool{}
	for _, e := range Table() {
		if e.Kind == Slot || e.Kind == Tmpfs {
			skip[e.Path] = true
		}
	}
	return skip
}

// Build lays the table over the slot. If it fails, what it mounted so far stays:
// the caller unmounts the slot with everything below it.
func (r Root) Build() error {
	for _, e := range Table() {
		if err := r.place(e); err != nil {
			return fmt.Errorf("setting up %s (%s): %w", e.Path, e.Kind, err)
		}
	}
	return nil
}

func (r Root) place(e Entry) error {
	at := filepath.Join(r.Slot, e.Path)
	switch e.Kind {
	case Anew:
		return r.overlay(e, at)
	case State:
		// Only inside /etc can the mount point be missing: elsewhere the image has it.
		if err := makeDir(at, 0o755); err != nil {
			return err
		}
		return bind(filepath.Join(r.State, e.Path), at, e.flags())
	case Slot:
		return r.showSlot(e, at)
	case Tmpfs:
		opts := fmt.Sprintf("mode=%o", e.Mode)
		if e.Options != "" {
			opts += "," + e.Options
		}
		if err := makeDir(at, 0o755); err != nil {
			return err
		}
		return unix.Mount("tmpfs", at, "tmpfs", e.flags(), opts)
	case File:
		return r.copyIn(e, at)
	default:
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
}

func (e Entry) flags() uintptr {
	if e.NoSuid {
		return unix.MS_NOSUID | unix.MS_NODEV
	}
	return 0
}

func (r Root) overlay(e Entry, at string) error {
	scratch := filepath.Join(r.Scratch, filepath.Base(e.Path))
	if err := makeDir(scratch, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, "mode=0700,size=64m"); err != nil {
		return err
	}
	upper, work := filepath.Join(scratch, "upper"), filepath.Join(scratch, "work")
	// The upper directory's mode becomes that of the whole.
	if err := errors.Join(makeDir(upper, fs.FileMode(e.Mode)), makeDir(work, 0o700)); err != nil {
		return err
	}
	return unix.Mount("overlay", at, "overlay", 0, "lowerdir="+at+",upperdir="+upper+",workdir="+work)
}

// showSlot makes the slot's own directory visible again under a directory that
// state covers. It is reached through a second mount of the slot.
func (r Root) showSlot(e Entry, at string) error {
	if err := makeDir(at, fs.FileMode(e.Mode)); err != nil {
		return err
	}
	under, err := os.MkdirTemp(r.Scratch, "slot")
	if err != nil {
		return err
	}
	defer os.Remove(under)
	// A non-recursive bind of the slot shows it without what was mounted on it.
	if err := unix.Mount(r.Slot, under, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	defer func() { _ = unix.Unmount(under, unix.MNT_DETACH) }()
	return bind(filepath.Join(under, e.Path), at, unix.MS_RDONLY)
}

func (r Root) copyIn(e Entry, at string) error {
	data, err := os.ReadFile(filepath.Join(r.State, e.Path))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(at, data, fs.FileMode(e.Mode)); err != nil {
		return err
	}
	return os.Chmod(at, fs.FileMode(e.Mode))
}

// bind shows a directory at another place; flags need a second step, because a
// bind mount takes those of its source.
func bind(from, to string, flags uintptr) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if flags == 0 {
		return nil
	}
	return unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
}

func makeDir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
