package node

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/node/disk"
	"github.com/slipway/slipway/internal/node/efivar"
	"github.com/slipway/slipway/internal/node/kernelfs"
	"github.com/slipway/slipway/internal/node/kmod"
	"github.com/slipway/slipway/internal/node/slot"
)

// How long a boot disk may take to appear: at first without, then with all
// drivers. Disks behind USB need several seconds.
const (
	waitFast = 1 * time.Second
	waitSlow = 20 * time.Second
)

func (b *boot) loadModules() error {
	modules, err := kmod.New()
	if err != nil {
		return diag.WithHint(err, "the initramfs does not belong to this kernel: write the image again")
	}
	b.modules = modules
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	for _, err := range modules.Load(kmod.Always(string(cpuinfo))...) {
		b.consoles.Warn("%v", err)
	}
	if !kernelfs.Mounted("/sys/firmware/efi/efivars") {
		// Without EFI variables the disk is found by its partitions.
		_ = unix.Mount("efivarfs", efivar.Dir, "efivarfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	return nil
}

// findDisk waits for the boot disk. Drivers beyond the common ones are loaded only
// when it is missing: probing for AHCI and optical drives takes seconds.
func (b *boot) findDisk() error {
	esp, _, err := efivar.Get(efivar.Dir, efivar.DevicePartUUID)
	if err != nil {
		b.consoles.Warn("%v", err)
	}
	_, b.record.CountsTries, _ = efivar.Get(efivar.Dir, efivar.BootCountPath)
	// virtio_scsi is rare and brings all of SCSI along.
	err = b.waitDisk(esp, waitFast, "virtio_")
	if errors.Is(err, disk.ErrNotFound) {
		b.consoles.Log("the boot disk is not there yet, loading all drivers")
		err = b.waitDisk(esp, waitSlow, "")
	}
	if err != nil {
		return err
	}
	b.record.Disk, b.record.Serial, b.record.DiskSize = b.disk.Path, b.disk.Serial, b.disk.Size
	if p, ok := b.disk.Find(disklayout.NameESP); ok {
		b.record.ESP = p.Path
	}
	b.consoles.Log("booting slot %s from %s", b.line.Slot, b.disk)
	return nil
}

// waitDisk looks for the disk again and again, and in between loads drivers whose
// name begins with prefix for devices that have appeared.
func (b *boot) waitDisk(esp string, wait time.Duration, prefix string) error {
	for deadline := time.Now().Add(wait); ; time.Sleep(50 * time.Millisecond) {
		disks, err := disk.List()
		if err != nil {
			return err
		}
		b.disk, err = disk.Choose(disks, b.line.Slot, esp)
		if !errors.Is(err, disk.ErrNotFound) || time.Now().After(deadline) {
			return err
		}
		for _, name := range b.modules.LoadDrivers(prefix) {
			b.consoles.Log("loaded driver %s", name)
		}
	}
}

func (b *boot) fitPartitions() error {
	state, growth, err := disk.Fit(b.disk)
	if err != nil {
		return err
	}
	switch {
	case growth.Created:
		b.consoles.Log("made the state partition %s with %d MiB", state.Path, state.Size>>20)
	case growth.Grown:
		b.consoles.Log("the disk became larger, the state partition %s has %d MiB now", state.Path, state.Size>>20)
	case growth.Table:
		b.consoles.Log("moved the backup partition table to the end of the disk")
	}
	b.state = state
	b.record.State, b.record.StateSize = state.Path, state.Size
	return nil
}

// verifySlot puts verity over the slot. An image that was never blessed is read
// through before it runs: better it fails now, when the boot loader still has
// another entry to try, than in the middle of work. State is prepared meanwhile.
func (b *boot) verifySlot() error {
	p, ok := b.disk.Find(disk.SlotName(b.line.Slot))
	if !ok {
		return fmt.Errorf("%s has no partition %s", b.disk, disk.SlotName(b.line.Slot))
	}
	b.record.SlotDevice = p.Path
	device, layout, err := slot.Open(p.Path, b.line.RootHash)
	if err != nil {
		return err
	}
	b.verified = device
	if !b.record.CountsTries {
		return nil
	}
	b.whole = make(chan error, 1)
	go func(done chan<- error) {
		begin := time.Now()
		n, err := slot.ReadThrough(device)
		if err == nil {
			b.consoles.Log("read all %d MiB of slot %s (%d blocks) through verity in %d ms",
				n>>20, b.line.Slot, layout.DataBlocks, time.Since(begin).Milliseconds())
		}
		done <- err
	}(b.whole)
	return nil
}

// awaitWhole waits for the reading that verifySlot began.
func (b *boot) awaitWhole() error {
	if b.whole == nil {
		return nil
	}
	err := <-b.whole
	b.whole = nil
	b.record.WholeSlotRead = err == nil
	return err
}

func (b *boot) mountSlot() error {
	if err := unix.Mount(b.verified, rootDir, "squashfs", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounting the squashfs of slot %s: %w", b.line.Slot, err)
	}
	return nil
}
