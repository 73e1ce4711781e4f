package netboot

import (
	"os"
	"testing"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// uuidOfTwin is that of the second machine that claims to be n1.
const uuidOfTwin = "8d1a7c55-0b7e-4f43-a1c9-52d9e7a40b22"

// serialOfN1 is what the metal profile recognises n1 by, beside its MAC address.
const serialOfN1 = "BOARD-N1"

// metalLab is a lab with the kernel of real hardware, which has drivers for USB, and
// with a node that is recognised by its serial number.
func metalLab(t *testing.T) *lab {
	t.Helper()
	images := place(t, "SLIPWAY_METAL_DIR", "../../out/netboot-metal")
	if _, err := os.Stat(images + "/image"); err != nil {
		t.Fatalf("%v\nhint: scripts/metal-image builds it", err)
	}
	return newLabOf(t, images+"/profiles/metal.yaml", images+"/image")
}

// TestSameMAC starts a second machine with the MAC address of the one that was armed,
// and with its ticket.
func TestSameMAC(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	b := l.blank(t)
	words := s.armed(t, b) // which the first machine has asked for
	b.uuid = uuidOfTwin
	notAdmitted(t, s, b, words, "two machines have the MAC address "+b.mac())
}

// TestMetal boots machines that real hardware's kernel and serial numbers are needed for.
func TestMetal(t *testing.T) {
	full(t)
	l := metalLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	t.Run("a USB disk alone", func(t *testing.T) {
		b := l.blank(t)
		b.serial, b.disks[0].USB = serialOfN1, true
		refused(t, s, b, refusal{name: "USB", words: "it is attached by USB", direct: true})
	})
	t.Run("same serial number", func(t *testing.T) {
		b := l.blank(t)
		b.serial, b.uuid, b.card = serialOfN1, uuidOfTwin, "52:54:00:12:34:99"
		sentAway(t, s, b, "two machines would be n1")
	})
}

// sentAway boots a machine by its firmware that must not get an installer although
// the node that it claims to be is armed.
func sentAway(t *testing.T, s *server, b *box, why string) {
	t.Helper()
	s.arm(t)
	before, at := b.sums(t), len(s.said(t))
	v := b.powerOn(t)
	got := sees(t, v, qemu.Like("slipway: "+why)+`[^\n]*\n`)
	t.Logf("console: %s", got[0])
	s.logs(t, at, "msg=boot", "mac="+b.mac(), "gets=boot-disk")
	s.told(t, at, b.mac(), why)
	pull(t, v)
	b.untouched(t, before)
	step(t, v, "sent away: %s", why)
}
