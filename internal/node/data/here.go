package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/disk"
)

// Here is this node. disks is its inventory, with what is on them.
func Here(disks func() []machine.Disk, say func(string)) World {
	return World{
		Root: "/", Disks: disks, Partition: partition, Format: format, Say: say,
		Systemctl: func(ctx context.Context, args ...string) error { return run(ctx, "systemctl", args...) },
	}
}

func partition(d machine.Disk) (string, error) {
	return disk.LayData(disk.Disk{Path: "/dev/" + d.Name, Serial: d.Serial, Model: d.Model, Size: d.Size, SectorSize: d.Sector})
}

// format makes the file system and flushes it: what comes next says that it is done.
// No blocks are held back for root, who is the only one to write here.
func format(ctx context.Context, device, uuid string) error {
	err := run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-L", disklayout.NameData, "-U", uuid,
		"-E", "lazy_itable_init=1,lazy_journal_init=1", device)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return settle(ctx, device)
}

// settle waits until udev knows the file system: the mount goes by its UUID.
func settle(ctx context.Context, device string) error {
	err := run(ctx, "udevadm", "trigger", "--settle", "--action=change", "--name-match="+filepath.Base(device))
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT) {
		return nil // no udev, no links to wait for
	}
	return err
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if text := strings.TrimSpace(string(out)); err != nil && text != "" {
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
