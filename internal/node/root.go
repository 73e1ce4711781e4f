package node

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/u-root/u-root/pkg/mount"
	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/node/disk"
	"github.com/slipway/slipway/internal/node/persist"
	"github.com/slipway/slipway/internal/node/record"
	"github.com/slipway/slipway/internal/node/slot"
	"github.com/slipway/slipway/internal/node/state"
)

func (b *boot) prepareState() error {
	action, err := state.Look(b.state.Path, b.state.Unfinished)
	if err != nil {
		return err
	}
	if action != state.Use {
		if err := b.makeOrRepair(action); err != nil {
			return err
		}
	}
	if err := state.Mount(b.state.Path, stateDir); err != nil {
		return err
	}
	grown, err := state.Grow(b.state.Path, stateDir, b.state.Size)
	if err != nil {
		// The node works with the smaller file system too.
		b.consoles.Warn("%v", err)
	}
	if grown {
		b.consoles.Log("grew the state file system to %d MiB", b.state.Size>>20)
	}
	b.record.FirstBoot = action == state.Make
	return nil
}

// makeOrRepair runs programs of the slot, which need device nodes.
func (b *boot) makeOrRepair(action state.Action) error {
	dev := filepath.Join(rootDir, "dev")
	if err := unix.Mount("/dev", dev, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("showing devices to the slot: %w", err)
	}
	defer func() { _ = unix.Unmount(dev, 0) }()
	if action == state.Make {
		b.consoles.Log("first boot: making the state file system on %s", b.state.Path)
		return state.MakeFS(rootDir, b.state.Path)
	}
	b.consoles.Warn("the state file system recorded errors, repairing it")
	return state.Repair(rootDir, b.state.Path)
}

func (b *boot) layers() persist.Root {
	return persist.Root{Slot: rootDir, State: stateDir, Scratch: scratchDir}
}

func (b *boot) prepareIdentity() error {
	changed, err := b.layers().Populate(b.line.RootHash)
	if err != nil {
		return err
	}
	b.record.SlotChanged = changed && !b.record.FirstBoot
	made, err := persist.EnsureIdentity(stateDir)
	if err != nil {
		return err
	}
	for _, name := range made {
		b.consoles.Log("made a new %s", name)
	}
	if !b.state.Unfinished {
		return nil
	}
	// Everything must be on the disk before the partition counts as complete.
	unix.Sync()
	return disk.Finish(b.disk)
}

func (b *boot) buildRoot() error { return b.layers().Build() }

// switchRoot hands over to systemd. It returns only on failure.
func (b *boot) switchRoot() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err == nil {
		b.record.ReachedSystemd = now.Nano() / 1e6
	}
	if err := record.Write(record.Path, b.record); err != nil {
		return err
	}
	b.consoles.Log("slot %s is ready after %d ms, starting systemd", b.line.Slot, b.record.ReachedSystemd)
	// u-root tells its progress through the standard logger.
	log.SetOutput(io.Discard)
	if err := mount.SwitchRoot(rootDir, "/sbin/init"); err != nil {
		return fmt.Errorf("switching to the root file system: %w", err)
	}
	return nil
}

// tearDown undoes an attempt, so that the next begins afresh.
func (b *boot) tearDown() {
	_ = b.awaitWhole() // it holds the verified device
	_ = unix.Unmount(mountDir, unix.MNT_DETACH)
	_ = unix.Unmount(rootDir, unix.MNT_DETACH)
	_ = unix.Unmount(stateDir, unix.MNT_DETACH)
	_ = unix.Unmount(filepath.Join(scratchDir, "etc"), unix.MNT_DETACH)
	if err := slot.Close(); err != nil && b.consoles != nil {
		b.consoles.Warn("%v", err)
	}
	_ = os.Chdir("/")
}
