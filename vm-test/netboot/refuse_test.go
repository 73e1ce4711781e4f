package netboot

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// refusal is a machine that must not be written, and the words that say why.
type refusal struct {
	name  string
	spoil func(*testing.T, *box)
	words string // on the console, in the API, in the events and on the page

	direct bool // its firmware is not the point
}

// TestRefusals boots machines that must not be written. Each says why on its
// console, pxed says it to the operator, and no byte of any disk changes.
func TestRefusals(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	t.Run("unarmed", func(t *testing.T) { refusedUnarmed(t, s, l.blank(t)) })
	t.Run("unknown", func(t *testing.T) {
		b := l.blank(t)
		b.card, b.uuid = "52:54:00:12:34:99", uuidOfTwin
		sentAway(t, s, b, "no node of the profile has MAC address "+b.card)
		s.disarm(t)
	})
	for _, r := range []refusal{
		{"wrong disk", func(_ *testing.T, b *box) { b.disks[0].Serial = "another-disk" }, "no disk is the system disk", true},
		{"foreign data", func(t *testing.T, b *box) {
			tool(t, "mkfs.ext4", "-q", "-L", "precious", b.disks[0].Path)
		}, "it holds foreign data", false},
		{"two matching disks", func(t *testing.T, b *box) {
			b.disks = append(b.disks, l.rawDisk(t, "second", b.disks[0].Serial, systemSize))
		}, "2 disks could be the system disk", true},
		{"too small", func(t *testing.T, b *box) {
			b.disks[0] = l.rawDisk(t, "small", b.disks[0].Serial, l.index.Disk.Size/2)
		}, "the image and the state need", true},
		{"no disk at all", func(_ *testing.T, b *box) { b.disks = nil }, "no disk is the system disk", true},
		{"started by a BIOS", func(_ *testing.T, b *box) { b.firmware = qemu.BIOS }, "started by a BIOS", false},
	} {
		t.Run(r.name, func(t *testing.T) { refused(t, s, l.blank(t), r) })
	}
}

// sums are the digests of all disks of a machine.
func (b *box) sums(t *testing.T) (out []string) {
	t.Helper()
	for _, d := range b.disks {
		out = append(out, sum(t, d.Path))
	}
	return out
}

// untouched compares all disks with what they were.
func (b *box) untouched(t *testing.T, before []string) {
	t.Helper()
	for i, now := range b.sums(t) {
		if now != before[i] {
			t.Errorf("disk %d was written", i)
		}
	}
}

func refusedUnarmed(t *testing.T, s *server, b *box) {
	before, at := b.sums(t), len(s.said(t))
	v := b.powerOn(t)
	s.logs(t, at, "msg=boot", "node="+nodeName, "gets=boot-disk")
	why := sees(t, v, qemu.Like("slipway: n1")+`[^\n]*`)
	s.told(t, at, nodeName, "n1 is not armed")
	pull(t, v)
	b.untouched(t, before)
	if m := s.show(t); m.Boots == "" || m.Grant != nil {
		t.Errorf("the operator is told %+v", m)
	}
	t.Logf("console: %s", why[0])
}

func refused(t *testing.T, s *server, b *box, r refusal) {
	if r.spoil != nil {
		r.spoil(t, b)
	}
	before, at := b.sums(t), len(s.said(t))
	s.arm(t)
	var v *qemu.VM
	if r.direct {
		v = b.installer(t, s.order(t, b))
	} else {
		v = b.powerOn(t)
	}
	s.refuses(t, v, at, r.words)
	pull(t, v)
	b.untouched(t, before)
	step(t, v, "refused: %s", r.words)
	s.disarm(t)
}

// refuses waits until the installer on a machine refuses, and checks that everybody
// is told why.
func (s *server) refuses(t *testing.T, v *qemu.VM, at int, words string) {
	t.Helper()
	got := sees(t, v, qemu.Like("nothing was written: ")+`(?:[^\n]*\n)*?[^\n]*`+qemu.Like(words)+`[^\n]*\n`)
	t.Logf("console: %s", got[0])
	m := s.show(t)
	t.Logf("operator: %s: %s; %q; %s", m.State, m.Why, m.Reasons, m.Hint)
	if said := m.Why + strings.Join(m.Reasons, " "); !strings.Contains(said, words) {
		t.Errorf("the operator is not told %q: %s", words, said)
	}
	if m.State != "failed" || m.Receipt == nil || m.Receipt.Written {
		t.Errorf("n1 is %s, its receipt %+v", m.State, m.Receipt)
	}
	s.told(t, at, nodeName, words)
}
