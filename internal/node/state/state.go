package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
)

// Look decides what to do with the state partition on device.
func Look(device string, unfinished bool) (Action, error) {
	head, err := readHead(device)
	if err != nil {
		return Use, fmt.Errorf("reading the state partition: %w", err)
	}
	return Decide(head, unfinished)
}

func readHead(device string) ([]byte, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// MakeFS makes an ext4 with a random UUID. The program comes from the system in
// root, so that the initramfs needs none of its own.
func MakeFS(root, device string) error {
	err := run(root, "/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "1", "-L", disklayout.NameState,
		"-E", "lazy_itable_init=1,lazy_journal_init=1", device)
	if err != nil {
		return fmt.Errorf("making the state file system on %s: %w", device, err)
	}
	return nil
}

// Repair lets e2fsck repair what can be repaired without a question.
func Repair(root, device string) error {
	err := run(root, "/usr/sbin/e2fsck", "-p", device)
	// Exit status 1 says that errors were corrected, 2 that a restart is due,
	// which is meant for a mounted root.
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() <= 2 {
		return nil
	}
	if err != nil {
		return diag.WithHint(fmt.Errorf("checking the state file system on %s: %w", device, err),
			"run e2fsck by hand from another system, or give up this node's state and rebuild the node")
	}
	return nil
}

// Mount mounts the state file system.
func Mount(device, target string) error {
	if err := os.MkdirAll(target, 0o700); err != nil {
		return fmt.Errorf("mounting state: %w", err)
	}
	if err := unix.Mount(device, target, "ext4", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mounting state (%s): %w", device, err)
	}
	return nil
}

// Grow makes the mounted file system as large as its partition, and reports
// whether it had to. The kernel does it while it is in use (EXT4_IOC_RESIZE_FS).
func Grow(device, target string, partition int64) (bool, error) {
	head, err := readHead(device)
	if err != nil {
		return false, fmt.Errorf("reading the state partition: %w", err)
	}
	super, ok := readSuperblock(head)
	// ext4 leaves out a last block group that is too small for its own tables,
	// so a few megabytes of difference mean nothing.
	if !ok || partition-super.Size() < 32<<20 {
		return false, nil
	}
	dir, err := os.Open(target)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	const resizeFS = 0x40086610 // _IOW('f', 16, __u64)
	blocks := uint64(partition / super.BlockSize)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), resizeFS, uintptr(unsafe.Pointer(&blocks)))
	if errno != 0 {
		return false, fmt.Errorf("growing the state file system to %d MiB: %w", partition>>20, errno)
	}
	return true, nil
}

// run runs a program of the system in root, and puts what it said into the error.
func run(root, path string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return fmt.Errorf("%w, it said: %s", err, text)
		}
		return err
	}
	return nil
}
