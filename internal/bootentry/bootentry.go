// Package bootentry writes what systemd-boot reads: loader.conf and the Type #1
// entries of the Boot Loader Specification, with boot counting.
package bootentry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// Tries is how often a new slot may be booted before it must have proved itself.
const Tries = 3

// PanicSeconds is when a kernel that panicked reboots. It must not be 0: a
// machine that hangs does not count as a failed try.
const PanicSeconds = 10

// Paths on the EFI system partition.
const (
	LoaderPath   = "EFI/BOOT/BOOTX64.EFI" // where firmware with empty NVRAM looks (UEFI specification 3.5.1.1)
	SystemdPath  = "EFI/systemd/systemd-bootx64.efi"
	ConfigPath   = "loader/loader.conf"
	entriesDir   = "loader/entries"
	kernelFormat = "slipway/%s/vmlinuz"
	initrdFormat = "slipway/%s/initrd.zst"
)

// Slot is a bootable slot.
type Slot struct {
	Letter   string   // "a" or "b"
	RootHash string   // dm-verity root hash of its content, hex
	Title    string   // for the menu
	Version  string   // newer versions are booted first
	Options  []string // more words of the kernel command line
}

// KernelPath is where the slot's kernel lies on the EFI system partition.
func (s Slot) KernelPath() string { return fmt.Sprintf(kernelFormat, s.Letter) }

// InitrdPath is where the slot's initramfs lies on the EFI system partition.
func (s Slot) InitrdPath() string { return fmt.Sprintf(initrdFormat, s.Letter) }

// Path is where the slot's entry lies while it has all its tries left.
func (s Slot) Path() string { return fmt.Sprintf("%s/slot-%s+%d.conf", entriesDir, s.Letter, Tries) }

// CommandLine is the slot's whole kernel command line.
func (s Slot) CommandLine() string {
	own := []string{"slipway.slot=" + s.Letter, "slipway.roothash=" + s.RootHash}
	return strings.Join(append(own, s.Options...), " ")
}

// Entry is the text of the slot's entry.
func (s Slot) Entry() []byte {
	return entry(s.Title, s.Version, s.KernelPath(), s.InitrdPath(), s.CommandLine())
}

func entry(title, version, kernel, initrd, options string) []byte {
	var b strings.Builder
	for _, kv := range [][2]string{
		{"title", title},
		{"sort-key", "slipway"},
		{"version", version},
		{"linux", "/" + kernel},
		{"initrd", "/" + initrd},
		{"options", options},
	} {
		fmt.Fprintf(&b, "%-10s %s\n", kv[0], kv[1])
	}
	return []byte(b.String())
}

// Installer is what a stick starts. It counts no tries: a stick has one entry.
type Installer struct {
	Title   string
	Version string
	Words   []string // of the kernel command line
}

// Places of the installer on the EFI system partition of a stick.
const (
	InstallerPath   = entriesDir + "/slipway-install.conf"
	InstallerKernel = "slipway/install/vmlinuz"
	InstallerInitrd = "slipway/install/initrd.zst"
)

// Entry is the text of the installer's entry.
func (i Installer) Entry() []byte {
	return entry(i.Title, i.Version, InstallerKernel, InstallerInitrd, strings.Join(i.Words, " "))
}

// Loader is the text of loader.conf: the newest slot with tries left boots at
// once, a held key shows the menu; nothing can be edited on the console.
func Loader() []byte {
	return []byte("timeout 0\nconsole-mode keep\neditor no\nauto-entries no\nauto-firmware yes\n")
}

// Options are the words of the command line that all slots of a cluster share.
func Options(s cluster.System) []string {
	words := []string{
		"slipway.shell=" + flag(s.RescueShell),
		"slipway.reboot=" + strconv.Itoa(s.RebootAfter),
		"panic=" + strconv.Itoa(PanicSeconds),
	}
	for _, c := range s.ExtraConsole {
		words = append(words, "console="+c)
	}
	return append(words, s.CommandLine...)
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
