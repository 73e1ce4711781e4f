package netboot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// TestInstallTFTP is the whole way with pxed as the only DHCP server, by the
// firmware's PXE. In the full form the machine then boots from the network a hundred
// times more.
func TestInstallTFTP(t *testing.T) {
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	b := l.blank(t)
	install(t, s, b, "firmware=uefi-tftp")
	if !t.Failed() {
		t.Run("a hundred boots", func(t *testing.T) {
			full(t)
			checkAgain(t, s, b)
		})
	}
}

// install images a blank machine and looks at everything that comes of it.
func install(t *testing.T, s *server, b *box, firmware string) {
	t.Helper()
	data := sum(t, b.disks[1].Path)
	s.arm(t)
	v := b.powerOn(t)
	watch(t, s, v, firmware)
	m := becomesReady(t, s, v)
	checkReceipt(t, s, m)
	checkLogin(t, s, v)
	off(t, v)
	checkDisk(t, s.lab, b.disks[0].Path)
	if got := sum(t, b.disks[1].Path); got != data {
		t.Errorf("the data disk was to be kept, and was changed")
	}
}

// watch follows a machine from the firmware's first packet to the start of its disk.
func watch(t *testing.T, s *server, v *qemu.VM, firmware string) {
	t.Helper()
	at := s.logs(t, 0, "msg=dhcp", firmware, "gave=ipxe")
	step(t, v, "the firmware was sent to iPXE")
	at = s.logs(t, at, "msg=dhcp", "gave=script")
	at = s.logs(t, at, "msg=boot", "node="+nodeName, "gets=install")
	step(t, v, "iPXE was sent to the installer")
	sees(t, v, qemu.Like("Slipway installer"))
	sees(t, v, qemu.Like("this machine becomes node n1 of cluster "+s.lab.profile.Name))
	sees(t, v, qemu.Like("the system goes to vda (serial "+s.lab.node.System.Serial))
	step(t, v, "the installer has chosen the disk")
	sees(t, v, qemu.Like("node n1 is installed on "))
	step(t, v, "installed")
	s.logs(t, at, "kind=receipt", "n1 is installed")
	sees(t, v, qemu.Like("nodeinit: booting slot a from /dev/vda serial "+s.lab.node.System.Serial))
	step(t, v, "its own disk was started")
}

func becomesReady(t *testing.T, s *server, v *qemu.VM) (installed installedMachine) {
	t.Helper()
	s.until(t, "n1 is ready", func() (bool, string) {
		installed.Machine = s.show(t)
		return installed.Ready != nil, fmt.Sprintf("%s; console:\n%s", installed.State, v.Serial[0].Tail())
	})
	step(t, v, "it reported that it is ready")
	return installed
}

// step notes how far a machine is.
func step(t *testing.T, v *qemu.VM, what string, args ...any) {
	t.Helper()
	t.Logf("%5.0f s: %s", time.Since(v.Started).Seconds(), fmt.Sprintf(what, args...))
}

func checkReceipt(t *testing.T, s *server, m installedMachine) {
	t.Helper()
	if m.State != "installed" || m.Grant != nil && m.Grant.Live {
		t.Errorf("n1 is %s, its right to be imaged %+v", m.State, m.Grant)
	}
	r := m.Receipt
	if r == nil {
		t.Fatal("there is no receipt")
	}
	if r.Error != "" || !r.ReadBack || !r.Written || r.Node != nodeName || r.Disk.Serial != s.lab.node.System.Serial || r.Bytes != s.lab.index.Disk.Size {
		t.Errorf("receipt %+v", r)
	}
	if len(r.Data) != 1 || r.Data[0].Action != "kept" {
		t.Errorf("data disks %+v", r.Data)
	}
	if id := (machine.Identity{UUID: uuid}); !strings.EqualFold(r.Identity.UUID, id.UUID) {
		t.Errorf("the machine calls itself %s", r.Identity.UUID)
	}
}
