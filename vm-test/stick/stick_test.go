package stick

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/vm-test/qemu"
)

// TestStickInstallsOnce is the whole way: OVMF with empty NVRAM boots the stick, a
// blank disk is imaged, the receipt is on the stick, and the machine goes on from its
// disk though the stick is still plugged in. The stick then does nothing any more.
func TestStickInstallsOnce(t *testing.T) {
	l := newLab(t)
	s := l.write(t)
	disk, nvram := l.blank(t), filepath.Join(t.TempDir(), "nvram")
	v := l.powerOn(t, s, nvram, disk)
	sees(t, v, "this stick has an install for node n1")
	sees(t, v, "the system goes to vda (serial "+disk.Serial)
	sees(t, v, "the receipt is on the stick")
	sees(t, v, "node n1 is installed on vda")
	shown := sees(t, v, "receipt: image ")
	if !strings.Contains(shown, "read back and compared") {
		t.Logf("the receipt on the console: %s", shown) // a serial port may stammer
	}
	sees(t, v, "with the stick in it, too")
	sees(t, v, "restarting from the disk")
	sees(t, v, "nodeinit: booting slot a from /dev/vda serial "+disk.Serial)
	sees(t, v, "n1 login:")
	pull(t, v)
	checkReceipt(t, s, disk)
	again(t, l, s, nvram, disk)
}

func checkReceipt(t *testing.T, s stick, disk qemu.Disk) {
	t.Helper()
	r := s.receipt(t)
	if r.Error != "" || !r.ReadBack || !r.Written || r.Node != "n1" || r.Disk.Serial != disk.Serial || r.Seed.IsZero() {
		t.Errorf("receipt on the stick: %+v", r)
	}
	if out := run(t, "sgdisk", "-v", disk.Path); !strings.Contains(out, "No problems found") {
		t.Errorf("the disk: %s", out)
	}
}

// again starts the stick once more: it says that it is used up, and no byte of disk or
// receipt changes before the disk is started.
func again(t *testing.T, l *lab, s stick, nvram string, disk qemu.Disk) {
	t.Helper()
	before, receipt, started := sum(t, disk.Path), s.file(t, "receipt.json"), s.file(t, "started.json")
	v := l.powerOn(t, s, nvram, disk)
	sees(t, v, "node n1 was installed with it on")
	sees(t, v, "with the stick in it, too")
	pull(t, v)
	if sum(t, disk.Path) != before || s.file(t, "receipt.json") != receipt || s.file(t, "started.json") != started {
		t.Error("a used stick has written")
	}
}

// TestStickRefuses starts machines that must not be written. The reason is on the
// console and in the receipt on the stick, and no byte of the disk changes.
func TestStickRefuses(t *testing.T) {
	l := newLab(t)
	t.Run("the stick is the only disk", func(t *testing.T) {
		s := l.write(t)
		v := l.powerOn(t, s, "")
		sees(t, v, "no disk is the system disk")
		sees(t, v, "switching off in")
		pull(t, v)
		if r := s.receipt(t); r.Written || !strings.Contains(strings.Join(r.Reasons, "\n"), "the machine was started from it") {
			t.Errorf("receipt: %+v", r)
		}
	})
	t.Run("the stick has the serial number of the system disk", func(t *testing.T) {
		s := l.write(t)
		v := l.start(t, "", []qemu.Disk{{Path: s.path, Format: "raw", Serial: l.node.System.Serial, USB: true}})
		sees(t, v, "no disk is the system disk")
		sees(t, v, "switching off in")
		pull(t, v)
		if r := s.receipt(t); r.Written || !strings.Contains(strings.Join(r.Reasons, "\n"), "the machine was started from it") {
			t.Errorf("receipt: %+v", r)
		}
	})
	t.Run("foreign data until the disk is named", func(t *testing.T) {
		s, disk := l.write(t), l.blank(t)
		if out, err := exec.Command("mkfs.ext4", "-q", "-L", "precious", disk.Path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before := sum(t, disk.Path)
		v := l.powerOn(t, s, "", disk)
		sees(t, v, "it holds foreign data")
		sees(t, v, "switching off in")
		pull(t, v)
		if sum(t, disk.Path) != before {
			t.Error("the disk was written")
		}
		if r := s.receipt(t); r.Written || !strings.Contains(strings.Join(r.Reasons, "\n"), "precious") {
			t.Errorf("receipt: %+v", r)
		}
		confirmed := l.write(t, "--overwrite", disk.Serial, "--node", "n1")
		v = l.powerOn(t, confirmed, "", disk)
		sees(t, v, "node n1 is installed on vda")
		pull(t, v)
		if err := os.Remove(disk.Path); err != nil {
			t.Error(err)
		}
	})
}
