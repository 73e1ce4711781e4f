package netboot

import (
	"fmt"
	"testing"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// TestCuts loses the machine's power in the middle of the write, and then, in the
// second try, pxed's. The install must finish, and nothing may start in between.
func TestCuts(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	b := l.blank(t)
	s.arm(t)

	v := b.powerOn(t)
	s.logs(t, 0, "msg=boot", "node="+nodeName, "gets=install", "try 1 of 3")
	writing(t, s, v)
	pull(t, v)
	step(t, v, "power lost while the image was written")
	if left := s.show(t); left.State != "imaging" {
		t.Errorf("n1 is %s after its power was lost", left.State)
	}

	// The disk is first in the boot order: that the machine comes back to the
	// network shows that the half-written disk does not boot.
	at := len(s.said(t))
	v = b.powerOn(t)
	s.logs(t, at, "msg=boot", "node="+nodeName, "gets=install", "try 2 of 3")
	s.kill() // while iPXE loads the installer, or has just loaded it
	s.start(t)
	writing(t, s, v)
	s.kill()
	step(t, v, "pxed killed while the image was written")
	sees(t, v, qemu.Like("trying again in"))
	s.start(t)
	step(t, v, "pxed is back")
	sees(t, v, qemu.Like("node n1 is installed on "))
	sees(t, v, qemu.Like("nodeinit: booting slot a from "))
	checkReceipt(t, s, becomesReady(t, s, v))
	off(t, v)
	checkDisk(t, l, b.disks[0].Path)
}

// writing waits until a machine that was sent to the installer has written a part of
// the image.
func writing(t *testing.T, s *server, v *qemu.VM) {
	t.Helper()
	s.until(t, "the image is being written", func() (bool, string) {
		p := s.show(t).Progress
		if p == nil {
			return false, v.Serial[0].Tail()
		}
		return p.Stage == machine.StageWrite && p.Done > 0, fmt.Sprintf("%s %d %%", p.Stage, p.Percent)
	})
}
