package netboot

import (
	"os"
	"testing"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// broken is how a link is cut: the port of the switch, or the cable of the machine.
type broken struct {
	percent int
	cut     func(t *testing.T, b *box, v *qemu.VM, down bool)
}

func atTheSwitch(t *testing.T, b *box, _ *qemu.VM, down bool) { linkDown(t, b.tap, down) }

func atTheMachine(t *testing.T, _ *box, v *qemu.VM, down bool) {
	if err := v.PullCable(t.Context(), 0, down); err != nil {
		t.Error(err)
	}
}

// TestCutLink cuts the link at 10, 50 and 90 % of the image, each time until the
// installer has noticed, and damages a byte in between. The node is right all the
// same, and its ticket is worth nothing afterwards.
func TestCutLink(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	w := newWire(t, s)
	b := l.blank(t)
	words := w.through(s.armed(t, b))
	w.on(30, 1, func(c *byte) { *c ^= 0x10 })
	cuts := []broken{{10, atTheSwitch}, {50, atTheMachine}, {90, atTheSwitch}}
	reached := make([]chan bool, len(cuts))
	var v *qemu.VM
	on := make(chan bool) // closed when the machine is on
	for i, c := range cuts {
		reached[i] = make(chan bool)
		w.on(c.percent, 1, func(*byte) {
			<-on
			c.cut(t, b, v, true)
			close(reached[i])
		})
	}
	v = b.installer(t, words)
	close(on)
	for i, c := range cuts {
		happens(t, s, v, reached[i])
		step(t, v, "link cut where %d %% of the image were sent; pxed has heard of %d %%", c.percent, percent(s.show(t).Progress))
		sees(t, v, qemu.Like("reading the image: ")+`[^\n]*`+qemu.Like("trying again in"))
		c.cut(t, b, v, false)
		step(t, v, "link restored")
		if i == 0 {
			sees(t, v, qemu.Like("fetching it again (1 of 2)"))
			step(t, v, "a damaged chunk was fetched again")
		}
	}
	sees(t, v, qemu.Like("node n1 is installed on "))
	goesOff(t, v)
	v = b.powerOn(t)
	checkReceipt(t, s, becomesReady(t, s, v))
	off(t, v)
	checkDisk(t, l, b.disks[0].Path)
	t.Run("used", func(t *testing.T) { notAdmitted(t, s, b, words, "works only once") })
}

// happens waits for something while the machine and pxed are there.
func happens(t *testing.T, s *server, v *qemu.VM, done <-chan bool) {
	t.Helper()
	s.until(t, "a part of the image is sent", func() (bool, string) {
		select {
		case <-done:
			return true, ""
		case <-v.Exited():
			t.Fatalf("the machine is off:\n%s", v.Serial[0].Tail())
		default:
		}
		return false, v.Serial[0].Tail()
	})
}

// TestSpoiledInstalls are installs that must end in a failure that everybody is told
// of, and in a disk that does not boot.
func TestSpoiledInstalls(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *wire, *box) func(*testing.T, *qemu.VM)
		why   string
	}{
		{"damaged on the wire", damagedOnTheWire, "while writing the image"},
		{"damaged on the disk", damagedOnTheDisk, "the disk gives back something else than was written"},
		{"link stays down", linkStaysDown, "given up after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, b := newWire(t, s), l.blank(t)
			then := c.spoil(t, w, b)
			at := len(s.said(t))
			v := b.installer(t, w.through(s.armed(t, b)))
			then(t, v)
			got := sees(t, v, qemu.Like("the disk does not boot, and its old content is lost: ")+`[^\n]*(?:\n[^\n]*)??`+qemu.Like(c.why)+`[^\n]*\n`)
			t.Logf("console: %s", got[0])
			s.told(t, at, nodeName, c.why)
			pull(t, v)
			if m := s.show(t); m.State != "failed" || !m.Receipt.Written || m.Receipt.ReadBack {
				t.Errorf("n1 is %s, its receipt %+v", m.State, m.Receipt)
			}
			silent(t, b.disks[0].Path, systemSize)
			step(t, v, "failed: %s", c.why)
		})
	}
	t.Run("does not boot", func(t *testing.T) { waitsForItsOperator(t, s, l.blank(t)) })
}

// damagedOnTheWire flips a bit of the same byte each time that it is sent.
func damagedOnTheWire(t *testing.T, w *wire, _ *box) func(*testing.T, *qemu.VM) {
	w.on(40, -1, func(c *byte) { *c ^= 0x10 })
	return func(t *testing.T, v *qemu.VM) { sees(t, v, qemu.Like("fetching it again (2 of 2)")) }
}

// damagedOnTheDisk changes a byte that was written, behind the machine's back, when
// most of the image was sent.
func damagedOnTheDisk(t *testing.T, w *wire, b *box) func(*testing.T, *qemu.VM) {
	done := make(chan bool)
	w.on(80, 1, func(*byte) {
		flipWritten(t, b)
		close(done)
	})
	return func(t *testing.T, v *qemu.VM) {
		select {
		case <-done:
		case <-v.Exited():
			t.Fatalf("the machine is off:\n%s", v.Serial[0].Tail())
		}
	}
}

// flipWritten changes a byte in the middle of the image's fifth part, and makes
// sure that the machine has written it by then.
func flipWritten(t *testing.T, b *box) {
	disk := b.lab.index.Disk
	i := len(disk.Chunks) / 20
	for disk.Chunks[i].Hole {
		i++
	}
	offset, length := disk.Span(i)
	f, err := os.OpenFile(b.disks[0].Path, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if sumOf(t, b.disks[0].Path, offset, length) != sumOf(t, b.lab.rawImage(t), offset, length) {
		t.Errorf("chunk %d was not written yet", i)
	}
	var c [1]byte
	at := offset + length/2
	if _, err := f.ReadAt(c[:], at); err != nil {
		t.Error(err)
	}
	c[0] ^= 0x10
	if _, err := f.WriteAt(c[:], at); err != nil {
		t.Error(err)
	}
	t.Logf("flipped a bit of byte %d of the disk, in chunk %d", at, i)
}

// linkStaysDown leaves the link down until the installer has given up, and restores
// it for the receipt.
func linkStaysDown(t *testing.T, w *wire, b *box) func(*testing.T, *qemu.VM) {
	w.on(50, 1, func(*byte) { linkDown(t, b.tap, true) })
	return func(t *testing.T, v *qemu.VM) {
		sees(t, v, qemu.Like("delivering the receipt: ")+`[^\n]*`+qemu.Like("trying again in"))
		step(t, v, "the installer has given up")
		linkDown(t, b.tap, false)
	}
}

// waitsForItsOperator starts the machine of a failed install with its firmware. Its
// disk is first in the boot order, and empty as the install left both ends: it comes to
// the network, where nobody sends it to its disk.
func waitsForItsOperator(t *testing.T, s *server, b *box) {
	at := len(s.said(t))
	v := b.powerOn(t)
	s.logs(t, at, "msg=boot", "node="+nodeName, "gets="+string(machine.ActionWait))
	sees(t, v, qemu.Like("slipway: n1 failed"))
	step(t, v, "sent to wait for its operator")
}

func percent(p *desk.Progress) int {
	if p == nil {
		return 0
	}
	return p.Percent
}
