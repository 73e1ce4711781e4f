package httpd

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway/slipway/internal/machine"
)

// Platform is the firmware that iPXE runs on, in the words of machine.Firmware.
type Platform string

// The platforms. An empty one was not told: the script finds out by itself.
const (
	PlatformEFI  Platform = "uefi"
	PlatformBIOS Platform = "bios"
)

// LocalBoot is how a BIOS machine is sent to its own disk.
type LocalBoot string

// The ways. Exit returns to the firmware, which goes on in its boot order; that
// is right almost everywhere. Sanboot starts the first disk itself, for firmware
// that starts the network again or hangs when a boot program returns to it.
const (
	LocalExit    LocalBoot = "exit"
	LocalSanboot LocalBoot = "sanboot"
)

// header starts every iPXE script.
const header = "#!ipxe\n"

// say prints a line on the machine's console. iPXE expands ${settings} and takes
// quotes and some other characters for its own; none of them may come through
// from what a machine or a profile says.
func say(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= ' ' && r <= '~' && !strings.ContainsRune("$`\\|&;<>\"'#", r) {
			return r
		}
		return ' '
	}, text)
	return "echo slipway: " + clean + "\n"
}

// bootDisk sends the machine to its own disk. Under UEFI the script must end in a
// non-zero status: with zero the firmware takes the boot for done, and stops in
// its menu.
func bootDisk(p Platform, local LocalBoot, message string) string {
	s := header + say(message)
	bios := "exit\n"
	if local == LocalSanboot {
		bios = "sanboot --no-describe --drive 0x80 ||\nexit\n"
	}
	switch p {
	case PlatformBIOS:
		return s + bios
	case PlatformEFI:
		return s + "exit 1\n"
	default:
		return s + "iseq ${platform} efi && goto efi ||\n" + bios + ":efi\nexit 1\n"
	}
}

// powerOff switches the machine off, or sends it to its disk where the firmware
// cannot do that.
func powerOff(p Platform, local LocalBoot, message string) string {
	rest := strings.TrimPrefix(bootDisk(p, local, "this firmware cannot switch off"), header)
	return header + say(message) + "sleep 3\npoweroff ||\n" + rest
}

// wait lets the machine ask again after some seconds.
func wait(message, again string, seconds int) string {
	return header + say(message) + fmt.Sprintf("sleep %d\nchain --replace --autofree %s ||\nexit 1\n", seconds, again)
}

// Kernel is what a machine is started with over the network.
type Kernel struct {
	Base   string   // URL of pxed, without a final slash
	Kernel string   // names in the index
	Initrd string   //
	Words  []string // of the command line
}

// loadTries and loadPause, seconds, outlast a pxed that is being restarted.
const (
	loadTries = 6
	loadPause = 5
)

// start loads kernel and initramfs, again and again while pxed is away. When that
// fails the machine goes to its disk: nothing was written, and the next boot is the
// next try.
func start(k Kernel, p Platform, local LocalBoot, message string) string {
	rest := strings.TrimPrefix(bootDisk(p, local, "cannot load the installer, going to the disk"), header)
	// EFI's kernel finds the initramfs by the name in its arguments, BIOS's by
	// the order of the commands.
	return header + say(message) + "set tries:int32 0\n:load\n" +
		fmt.Sprintf("kernel --name vmlinuz %s initrd=initrd.zst %s || goto again\n", fileURL(k.Base, k.Kernel), strings.Join(k.Words, " ")) +
		fmt.Sprintf("initrd --name initrd.zst %s || goto again\n", fileURL(k.Base, k.Initrd)) +
		"boot || goto failed\n" +
		fmt.Sprintf(":again\nimgfree ||\ninc tries || goto failed\niseq ${tries} %d && goto failed ||\n", loadTries) +
		say("the installer was not loaded, trying again") +
		fmt.Sprintf("sleep %d\ngoto load\n", loadPause) +
		":failed\nimgfree ||\n" + rest
}

func fileURL(base, name string) string {
	return base + (&url.URL{Path: machine.PathArtifacts + name}).EscapedPath()
}

// InstallWords are the kernel arguments that start an install.
func InstallWords(servers, ticket, mac string) []string {
	return []string{
		machine.WordMode + "=" + machine.ModeInstall,
		machine.WordServer + "=" + servers,
		machine.WordTicket + "=" + ticket,
		machine.WordMAC + "=" + mac,
	}
}

// InventoryWords are the kernel arguments that start an inventory.
func InventoryWords(servers, mac string) []string {
	return []string{machine.WordMode + "=" + machine.ModeInventory, machine.WordServer + "=" + servers, machine.WordMAC + "=" + mac}
}
