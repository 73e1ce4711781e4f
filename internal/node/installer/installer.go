// Package installer is the story of a machine that was started to be imaged or to
// be inventoried: from the kernel's first program to the restart.
package installer

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/console"
	"github.com/slipway/slipway/internal/node/efivar"
	"github.com/slipway/slipway/internal/node/install"
	"github.com/slipway/slipway/internal/node/install/httpsource"
	"github.com/slipway/slipway/internal/node/inventory"
	"github.com/slipway/slipway/internal/node/kernelfs"
	"github.com/slipway/slipway/internal/node/kmod"
	"github.com/slipway/slipway/internal/node/network"
)

// Waits of an installer.
const (
	nicAppear = 20 * time.Second
	nicLink   = 30 * time.Second // spanning tree without edge ports
	dhcpWait  = 90 * time.Second
	settle    = 3 * time.Second  // without a new disk, before an inventory
	diskWait  = 25 * time.Second // for the first disk; large ones spin up for 15 s
	stall     = 30 * time.Second
	small     = 30 * time.Second
)

// memory is what the Go heap is kept near to, bytes: an installer runs on machines
// with 512 MiB, of which the initramfs takes some.
const memory = 96 << 20

// app is one start of the installer.
type app struct {
	line     Line
	consoles *console.Consoles
	screen   *screen
	modules  *kmod.Loader
	stick    string // kernel's name of the disk that holds the bundle
}

// Main installs or inventories this machine when the kernel command line says so,
// and does not return then. Otherwise it returns, and nothing was changed but that
// the kernel's file systems are mounted.
func Main() {
	if err := kernelfs.Mount(); err != nil {
		return // the boot says it better
	}
	data, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return
	}
	line, err := ParseLine(string(data))
	if line.Mode == "" {
		return
	}
	debug.SetMemoryLimit(memory)
	a := &app{line: line, consoles: console.Open()}
	a.screen = &screen{consoles: a.consoles}
	_ = os.WriteFile("/proc/sys/kernel/printk_devkmsg", []byte("on\n"), 0)
	for {
		// What one try started ends with it.
		ctx, cancel := context.WithCancel(context.Background())
		e := a.run(ctx, err)
		cancel()
		a.end(e)
	}
}

// run does what the machine was started for and says how to end.
func (a *app) run(ctx context.Context, err error) ending {
	if err == nil {
		err = a.prepare()
	}
	if err != nil {
		return failed(err)
	}
	if a.line.Mode == machine.ModeInventory {
		return a.inventory(ctx)
	}
	if a.line.Server == "" {
		return a.fromStick(ctx)
	}
	return a.fromNetwork(ctx)
}

// prepare loads what an installer needs to see the machine.
func (a *app) prepare() error {
	a.screen.Say("Slipway installer")
	modules, err := kmod.New()
	if err != nil {
		return diag.WithHint(err, "the initramfs does not belong to this kernel: build the image again")
	}
	a.modules = modules
	for _, err := range modules.Load(needed()...) {
		a.screen.Say(err.Error())
	}
	if !kernelfs.Mounted(efivar.Dir) {
		_ = unix.Mount("efivarfs", efivar.Dir, "efivarfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	return nil
}

// needed are the modules that no device asks for: file systems of a stick, and the
// PHY driver without which r8169 does not come up.
func needed() []string {
	return []string{"virtio_pci", "virtio_blk", "nvme", "efivarfs", "vfat", "nls_cp437", "nls_ascii", "ext4", "virtio_rng", "realtek"}
}

func (a *app) loadDrivers() {
	for _, name := range a.modules.LoadDrivers("") {
		a.consoles.Log("loaded driver %s", name)
	}
}

// connect brings the network up and prepares to talk to pxed.
func (a *app) connect(ctx context.Context) (*httpsource.Source, error) {
	up, err := network.Start(ctx, network.Request{
		MAC: a.line.MAC, Say: a.screen.Say, Load: a.loadDrivers,
		Appear: nicAppear, Link: nicLink, DHCP: dhcpWait,
	})
	if err != nil {
		return nil, err
	}
	a.screen.Say(up.String())
	go network.Keep(ctx, up, a.screen.Say)
	return httpsource.New(httpsource.Options{
		Server: a.line.Server, Ticket: a.line.Ticket, Start: bootID(), Client: &http.Client{Transport: httpsource.Transport()},
		Stall: stall, Small: small,
	})
}

// bootID is what the kernel calls this start, at random (random(4)). Without one the
// seed can be fetched only once.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// look takes the inventory, when no disk has appeared for a while.
func (a *app) look(bootDisk string) machine.Report {
	var seen []string
	begin := time.Now()
	for changed := begin; ; time.Sleep(250 * time.Millisecond) {
		a.loadDrivers()
		var now []string
		for _, d := range inventory.Disks(os.DirFS("/sys")) {
			if d.Name != bootDisk {
				now = append(now, d.Name)
			}
		}
		if !slices.Equal(now, seen) {
			seen, changed = now, time.Now()
		}
		if time.Since(begin) > diskWait || len(seen) > 0 && time.Since(changed) > settle {
			break
		}
	}
	r := inventory.Take(a.sources(bootDisk))
	for _, d := range r.Disks {
		a.consoles.Log("disk %s serial %q %s, %d MiB", d.Name, d.Serial, d.Model, d.Size>>20)
	}
	return r
}

func (a *app) sources(bootDisk string) inventory.Sources {
	partition, _, err := efivar.Get(efivar.Dir, efivar.DevicePartUUID)
	if err != nil {
		partition = "" // not started by our boot loader
	}
	return inventory.Sources{
		Sys: os.DirFS("/sys"), Proc: os.DirFS("/proc"), Now: time.Now(), BootMAC: a.line.MAC,
		BootDisk: bootDisk, BootPartition: partition,
		Open: func(name string) (inventory.Reader, error) { return os.Open("/dev/" + name) },
	}
}

func (a *app) env() install.Env {
	return install.Env{
		Screen: a.screen, Clock: clock{}, Random: random{}, Sleep: pause,
		Patience: install.DefaultPatience(), Workers: min(max(runtime.NumCPU(), 1), 4),
		Home: a.line.Server,
	}
}

func (a *app) fromNetwork(ctx context.Context) ending {
	source, err := a.connect(ctx)
	if err != nil {
		return failed(err)
	}
	report := a.look("")
	for {
		result := install.Run(ctx, a.env(), source, disks{a}, report)
		e := endingOf(result, false)
		if e.action != again {
			return e
		}
		_ = pause(ctx, e.wait)
	}
}

// inventory reports, and does as it is told: nothing is written in this mode.
func (a *app) inventory(ctx context.Context) ending {
	source, err := a.connect(ctx)
	if err != nil {
		return failed(err)
	}
	report := a.look("")
	fails := 0
	for {
		report.Clock = time.Now()
		reply, _, err := source.Report(ctx, report)
		if err != nil {
			if fails++; fails >= install.DefaultPatience().Tries {
				return failed(fmt.Errorf("reporting this machine: %w", err))
			}
			a.screen.Say(fmt.Sprintf("reporting this machine: %v; trying again", err))
			_ = pause(ctx, 5*time.Second)
			continue
		}
		fails = 0
		e := endingOf(install.Result{Reply: reply}, false)
		a.screen.Say(reply.Message)
		if e.action != again {
			return e
		}
		_ = pause(ctx, e.wait)
	}
}
