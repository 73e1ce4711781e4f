// Package node is the story of a boot: from the kernel's first program to systemd.
package node

import (
	"fmt"
	"os"
	"time"

	"github.com/slipway/slipway/internal/node/bootline"
	"github.com/slipway/slipway/internal/node/console"
	"github.com/slipway/slipway/internal/node/disk"
	"github.com/slipway/slipway/internal/node/kernelfs"
	"github.com/slipway/slipway/internal/node/kmod"
	"github.com/slipway/slipway/internal/node/record"
	"github.com/slipway/slipway/internal/node/rescue"
)

// Where nodeinit works. All of /run outlives the boot.
const (
	rootDir    = "/sysroot"
	runDir     = "/run/slipway"
	stateDir   = runDir + "/state"
	scratchDir = runDir + "/layers"
	mountDir   = runDir + "/mnt"
)

// boot is one attempt to start the node.
type boot struct {
	consoles *console.Consoles
	line     bootline.Line
	modules  *kmod.Loader
	disk     disk.Disk
	state    disk.State
	verified string     // device path of the slot under verity
	whole    chan error // the reading of the whole slot, while it goes on
	record   record.Boot
}

// step is one step of a boot. doing completes the sentence "while ...".
type step struct {
	name  string
	doing string
	do    func(*boot) error
}

// steps is the order of a boot, and the reason for each place in it.
func steps() []step {
	return []step{
		// Everything else reads /proc and /sys or opens device nodes.
		{"mounts", "mounting the kernel's file systems", (*boot).mountKernel},
		// The words of the boot entry decide what is looked for.
		{"command line", "reading the kernel command line", (*boot).readLine},
		// Disks, file systems and EFI variables appear behind their modules.
		{"modules", "loading kernel modules", (*boot).loadModules},
		{"disk", "looking for the disk that the node was started from", (*boot).findDisk},
		// Before the slot is opened: the kernel reads a changed partition table
		// only while no partition is in use.
		{"partitions", "fitting the partitions to the disk", (*boot).fitPartitions},
		// Nothing of the slot is used, and no program of it is run, before this.
		{"verify", "verifying the slot", (*boot).verifySlot},
		{"slot", "mounting the slot", (*boot).mountSlot},
		// mkfs and e2fsck come from the verified slot.
		{"state", "preparing the state file system", (*boot).prepareState},
		{"identity", "preparing the node's identity", (*boot).prepareIdentity},
		// An image on trial does not run before all of it was read. Reading
		// goes on beside the steps above, which use it block by block.
		{"whole slot", "reading the whole slot", (*boot).awaitWhole},
		// The table of what persists is laid over the slot; it needs both.
		{"root", "building the root file system", (*boot).buildRoot},
		// cloud-init's directory exists only now.
		{"seed", "fetching the seed", (*boot).fetchSeed},
		// Last: nothing may be mounted or changed behind systemd's back.
		{"units", "telling systemd what was done for it", (*boot).writeUnits},
	}
}

// Boot starts the node and does not return: it ends in systemd, or in the rescue
// menu and a restart.
func Boot() {
	for {
		b := &boot{}
		doing, err := b.run()
		if err == nil {
			doing, err = "starting systemd", b.switchRoot()
		}
		b.rescue(doing, err)
	}
}

// run takes all steps. On an error it says what was being done.
func (b *boot) run() (string, error) {
	for _, s := range steps() {
		begin := time.Now()
		if err := s.do(b); err != nil {
			return s.doing, err
		}
		took := time.Since(begin)
		b.record.Steps = append(b.record.Steps, record.Step{Name: s.name, Milliseconds: took.Milliseconds()})
	}
	return "", nil
}

// rescue says what is wrong and does what the person before the node chooses. It
// returns when the boot shall be tried again.
func (b *boot) rescue(doing string, err error) {
	if b.consoles == nil {
		b.consoles = console.Open()
	}
	defer b.tearDown()
	other, offered := b.otherEntry()
	rescue.Run(b.consoles, rescue.Trouble{
		Slot: b.line.Slot, Doing: doing, Err: err,
		OtherEntry: other, OtherOffered: offered, CountsTries: b.record.CountsTries,
		Shell: b.line.Shell, Wait: b.line.Reboot, Root: b.shellRoot(),
	})
}

// shellRoot is the verified system that a shell may come from, if one is mounted.
func (b *boot) shellRoot() string {
	if _, err := os.Stat(rootDir + "/usr/bin/bash"); err != nil {
		return ""
	}
	return rootDir
}

func (b *boot) mountKernel() error {
	if err := kernelfs.Mount(); err != nil {
		return err
	}
	b.consoles = console.Open()
	// Without this the kernel drops lines when many come at once.
	_ = os.WriteFile("/proc/sys/kernel/printk_devkmsg", []byte("on\n"), 0)
	for _, dir := range []string{rootDir, runDir, stateDir, scratchDir, mountDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
	}
	return nil
}

func (b *boot) readLine() error {
	data, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return fmt.Errorf("reading the kernel command line: %w", err)
	}
	b.line, err = bootline.Parse(string(data))
	b.record.Slot, b.record.RootHash = b.line.Slot, b.line.RootHash
	b.record.ShellAllowed, b.record.RebootAfter = b.line.Shell, int(b.line.Reboot/time.Second)
	return err
}
