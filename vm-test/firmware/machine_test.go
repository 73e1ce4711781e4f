package firmware

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/netns"
)

// kind is one way for a machine to netboot.
type kind struct {
	name string
	card string // options of the network card
	efi  bool
}

// The firmwares. romfile= takes away QEMU's option ROM, an iPXE of 2019, and shows
// OVMF's own PXE.
var (
	ovmf    = kind{"ovmf", ",romfile=", true}
	ovmfROM = kind{"ovmf with option ROM", "", true}
	seabios = kind{"seabios with option ROM", "", false}
)

// What the machine says about itself.
const (
	mac    = "52:54:00:4e:00:01"
	uuid   = "4c4c4544-0042-3510-8056-b4c04f4a4d31"
	serial = "SW-0001"
)

// Where Debian's ovmf package puts the firmware.
const (
	ovmfCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// vm is a machine that is switched on.
type vm struct {
	l       *lab
	console string
}

// powerOn starts a machine in the lab; it is off when the test ends. Its disk, when
// it has one, is not changed.
func (l *lab) powerOn(k kind, disk string) vm {
	l.t.Helper()
	dir := l.t.TempDir()
	m := vm{l, filepath.Join(dir, "console")}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", "1", "-m", "512", "-uuid", uuid, "-smbios", "type=1,serial=" + serial,
		"-object", "rng-random,id=r,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=r",
		"-netdev", "tap,id=n,ifname=" + netns.Tap(l.t, l.bridge) + ",script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=n,mac=" + mac + ",bootindex=1" + k.card,
		"-serial", "file:" + m.console,
	}
	if k.efi {
		nvram := filepath.Join(dir, "nvram")
		vars, err := os.ReadFile(ovmfVars)
		if err == nil {
			err = os.WriteFile(nvram, vars, 0o600)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		args = append(args, "-drive", "if=pflash,unit=0,format=raw,readonly=on,file="+ovmfCode, "-drive", "if=pflash,unit=1,format=raw,file="+nvram)
	}
	if disk != "" {
		args = append(args, "-drive", "if=none,id=d,format=raw,snapshot=on,file="+disk, "-device", "virtio-blk-pci,drive=d,bootindex=2")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	return m
}

// boots waits until the console shows that the disk has started.
func (m vm) boots(pattern string) {
	m.l.t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(stepTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if text, err := os.ReadFile(m.console); err == nil && want.Match(text) {
			m.l.note("the disk starts")
			return
		}
	}
	text, _ := os.ReadFile(m.console)
	m.l.t.Fatalf("the disk did not start; the console:\n%q", text[max(0, len(text)-2000):])
}

// disk is a bootable one, as imagebuild made it.
func disk(t *testing.T) string {
	return filepath.Join(bootFiles(t), "slipway-lab.raw")
}
