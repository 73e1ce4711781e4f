package netboot

import (
	"io"
	"net/http"
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
}

// TestRefusals boots machines that must not be written. Each says why on its
// console, pxed says it to the operator, and no byte of any disk changes.
func TestRefusals(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	t.Run("unarmed", func(t *testing.T) { refusedUnarmed(t, s, l.blank(t)) })
	for _, r := range []refusal{
		{"wrong disk", func(_ *testing.T, b *box) { b.disks[0].Serial = "another-disk" }, "no disk is the system disk"},
		{"foreign data", func(t *testing.T, b *box) {
			tool(t, "mkfs.ext4", "-q", "-L", "precious", b.disks[0].Path)
		}, "it holds foreign data"},
		{"two matching disks", func(t *testing.T, b *box) {
			b.disks = append(b.disks, l.rawDisk(t, "second", b.disks[0].Serial, systemSize))
		}, "2 disks could be the system disk"},
		{"too small", func(t *testing.T, b *box) {
			b.disks[0] = l.rawDisk(t, "small", b.disks[0].Serial, l.index.Disk.Size/2)
		}, "the image and the state need"},
		{"started by a BIOS", func(_ *testing.T, b *box) { b.firmware = qemu.BIOS }, "started by a BIOS"},
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
	pull(t, v)
	b.untouched(t, before)
	if m := s.show(t); m.Boots == "" || m.Grant != nil {
		t.Errorf("the operator is told %+v", m)
	}
	t.Logf("console: %s", why[0])
}

func refused(t *testing.T, s *server, b *box, r refusal) {
	r.spoil(t, b)
	before := b.sums(t)
	s.arm(t)
	v := b.powerOn(t)
	got := sees(t, v, qemu.Like("nothing was written: ")+`(?:[^\n]*\n)*?[^\n]*`+qemu.Like(r.words)+`[^\n]*\n`)
	t.Logf("console: %s", got[0])
	m := s.show(t)
	pull(t, v)
	b.untouched(t, before)
	t.Logf("operator: %s: %s; %q; %s", m.State, m.Why, m.Reasons, m.Hint)
	if said := m.Why + strings.Join(m.Reasons, " "); !strings.Contains(said, r.words) {
		t.Errorf("the operator is not told %q: %s", r.words, said)
	}
	if m.State != "failed" || m.Receipt == nil || m.Receipt.Written {
		t.Errorf("n1 is %s, its receipt %+v", m.State, m.Receipt)
	}
	for where, text := range map[string]string{"events": eventsText(s.events(t)), "page": page(t), "log": s.said(t)} {
		if !strings.Contains(text, r.words) {
			t.Errorf("the %s do not say %q", where, r.words)
		}
	}
	if _, err := s.ask("disarm", nodeName); err != nil {
		t.Error(err)
	}
}

// page is what pxed's web page shows.
func page(t *testing.T) string {
	t.Helper()
	at, _, _ := strings.Cut(address, "/")
	resp, err := http.Get("http://" + at + ":8080/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
