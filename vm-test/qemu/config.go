// Package qemu runs one virtual machine at a time for the tests: firmware, disks,
// network, consoles and a monitor, and the waits that a test needs.
//
// Nothing a guest does reaches the outside: its network is QEMU's own user mode
// with restrict=on, and the only thing that listens is a forwarded SSH port on
// 127.0.0.1. Every wait has an end and shows the console when it fails.
package qemu

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
)

// Firmware is what the machine starts with.
type Firmware int

// The firmwares. BIOS is SeaBIOS, as QEMU brings it.
const (
	UEFI Firmware = iota // OVMF without Secure Boot
	BIOS
)

// Config describes a machine for one power-on.
type Config struct {
	Name     string // base name of the machine's files
	Dir      string // existing directory for them
	Accel    Accel
	CPUs     int // 0 means 2
	Memory   int // MiB, 0 means 1024
	Firmware Firmware
	NVRAM    string // UEFI variables; made from the template when absent; "" means Dir/Name.nvram
	Disks    []Disk
	NICs     []NIC
	Kernel   string // direct boot, past the firmware's boot order; "" boots from disk
	Initrd   string
	Append   string
	NoReboot bool // a guest that reboots ends the machine

	UUID         string            // of the machine (SMBIOS); "" means all zeros
	SerialNumber string            // of the machine (SMBIOS); "" means none
	NetworkFirst bool              // the cards are tried before the disks, not after them
	FwCfg        map[string]string // items for the firmware, by name
}

// Disk is a disk of the machine, virtio unless it is a USB one; the first is the
// first in the boot order.
type Disk struct {
	Path     string
	Format   string // qcow2 or raw
	Serial   string
	ReadOnly bool
	USB      bool
}

// NIC is a virtio network card, in QEMU's user network 10.0.2.0/24 unless it is
// plugged into a tap.
type NIC struct {
	MAC string
	SSH netip.Addr // the guest's address whose port 22 is forwarded; zero means none
	Tap string     // interface of the host; SSH is then reached directly
}

// Serials is the number of serial ports of a machine. The first is where
// firmware, kernel and getty speak; the second is for what must not be mixed with them.
const Serials = 2

// Where Debian's ovmf package puts the firmware.
const (
	ovmfCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// firstFD is the number of the first extra file in a child process: the monitor's
// socket. Those of the serial ports follow.
const firstFD = 3

func (c Config) withDefaults() (Config, error) {
	if c.Name == "" || c.Dir == "" {
		return c, errors.New("a machine needs a name and a directory")
	}
	if c.CPUs == 0 {
		c.CPUs = 2
	}
	if c.Memory == 0 {
		c.Memory = 1024
	}
	if c.NVRAM == "" {
		c.NVRAM = c.file("nvram")
	}
	return c, nil
}

func (c Config) file(suffix string) string { return filepath.Join(c.Dir, c.Name+"."+suffix) }

func (c Config) serialFile(i int) string { return c.file("serial" + strconv.Itoa(i)) }

// args is the command line of QEMU for the machine.
func (c Config) args() []string {
	a := []string{
		"-name", c.Name, "-nodefaults", "-no-user-config", "-display", "none",
		"-machine", "q35", "-smp", strconv.Itoa(c.CPUs), "-m", strconv.Itoa(c.Memory),
		"-object", "rng-random,id=rng0,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng0",
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d", firstFD), "-mon", "chardev=monitor,mode=control",
	}
	if c.UUID != "" {
		a = append(a, "-uuid", c.UUID)
	}
	if c.SerialNumber != "" {
		a = append(a, "-smbios", "type=1,serial="+c.SerialNumber)
	}
	if slices.ContainsFunc(c.Disks, func(d Disk) bool { return d.USB }) {
		a = append(a, "-device", "qemu-xhci")
	}
	a = append(a, c.Accel.args()...)
	a = append(a, c.firmwareArgs()...)
	for i := range Serials {
		id := "serial" + strconv.Itoa(i)
		a = append(a, "-chardev", fmt.Sprintf("socket,id=%s,fd=%d,logfile=%s,logappend=off", id, firstFD+1+i, c.serialFile(i)), "-serial", "chardev:"+id)
	}
	for i, d := range c.Disks {
		a = append(a, d.args(i)...)
	}
	for i, n := range c.NICs {
		a = append(a, n.args(i, c)...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.FwCfg)) {
		a = append(a, "-fw_cfg", "name="+name+",string="+c.FwCfg[name])
	}
	return append(a, c.kernelArgs()...)
}

func (c Config) firmwareArgs() []string {
	if c.Firmware == BIOS {
		return []string{"-machine", "graphics=off"} // SeaBIOS then speaks on the serial port
	}
	return []string{
		"-drive", "if=pflash,unit=0,format=raw,readonly=on,file=" + ovmfCode,
		"-drive", "if=pflash,unit=1,format=raw,file=" + c.NVRAM,
	}
}

func (c Config) kernelArgs() []string {
	var a []string
	if c.NoReboot {
		a = append(a, "-no-reboot")
	}
	if c.Kernel != "" {
		a = append(a, "-kernel", c.Kernel, "-append", c.Append)
	}
	if c.Initrd != "" {
		a = append(a, "-initrd", c.Initrd)
	}
	return a
}

// args describes the disk. cache=unsafe spares the host its fsyncs: a guest's
// write is in the host's page cache, and a test does not outlive the host.
func (d Disk) args(i int) []string {
	drive := fmt.Sprintf("if=none,id=disk%d,format=%s,cache=unsafe,discard=unmap,file=%s", i, d.Format, d.Path)
	if d.ReadOnly {
		drive += ",readonly=on"
	}
	kind := "virtio-blk-pci"
	if d.USB {
		kind = "usb-storage"
	}
	device := fmt.Sprintf("%s,drive=disk%d,bootindex=%d", kind, i, i+1)
	if d.Serial != "" {
		device += ",serial=" + d.Serial
	}
	return []string{"-drive", drive, "-device", device}
}

// Places in the boot order. Disks come in between, counted from 1.
const (
	bootFirst = 0
	bootLast  = 100
)

// args describes the card. Port 0 lets the kernel choose a free one, which the
// monitor then names: nobody can take it in between. Under UEFI the card has no boot
// ROM, because QEMU's is an iPXE of 2019 that costs 16 s; under BIOS that ROM is what
// boots from the network.
func (n NIC) args(i int, c Config) []string {
	net := fmt.Sprintf("user,id=net%d,restrict=on", i)
	switch {
	case n.Tap != "":
		net = fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no", i, n.Tap)
	case n.SSH.IsValid():
		net += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:0-%s:22", n.SSH)
	}
	order := bootLast + i
	if c.NetworkFirst {
		order = bootFirst
	}
	device := fmt.Sprintf("virtio-net-pci,id=card%d,netdev=net%d,mac=%s", i, i, n.MAC)
	if n.Tap != "" {
		device += fmt.Sprintf(",bootindex=%d", order)
	}
	if c.Firmware == UEFI || n.Tap == "" {
		device += ",romfile="
	}
	return []string{"-netdev", net, "-device", device}
}
