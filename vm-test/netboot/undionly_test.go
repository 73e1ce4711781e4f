package netboot

import (
	"regexp"
	"testing"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/qemu"
)

// TestUndionly starts a BIOS machine with the iPXE that pxed gives to BIOS firmware.
// The machine's ROM is an iPXE too, and asks for a script at once: it is stopped, and
// told to load the other one.
func TestUndionly(t *testing.T) {
	full(t)
	l := newLab(t)
	s := l.serve(t, pxe.ModeDHCP)
	b := l.blank(t)
	b.firmware = qemu.BIOS
	before, at := b.sums(t), len(s.said(t))
	s.arm(t)
	v := b.powerOn(t)
	sees(t, v, `Press Ctrl-B for the iPXE command line`)
	press(t, v, "\x02")
	sees(t, v, `iPXE> `)
	spell(t, v, "dhcp")
	sees(t, v, `iPXE> `)
	spell(t, v, "chain "+s.url()+"/artifacts/netboot/ipxe/undionly.kpxe")
	sees(t, v, `iPXE initialising devices`)
	step(t, v, "undionly.kpxe starts")
	at = s.logs(t, at, "msg=dhcp", "firmware=bios", "gave=script")
	s.logs(t, at, "msg=boot", "firmware=bios", "gets=install")
	s.refuses(t, v, at, "started by a BIOS")
	pull(t, v)
	b.untouched(t, before)
}

// spell types a line key by key, as fast as it is echoed: the BIOS remembers
// fifteen keys.
func spell(t *testing.T, v *qemu.VM, line string) {
	t.Helper()
	for _, c := range line {
		press(t, v, string(c))
		sees(t, v, regexp.QuoteMeta(string(c)))
	}
	press(t, v, "\r")
}

func press(t *testing.T, v *qemu.VM, keys string) {
	t.Helper()
	if err := v.Serial[0].Press(keys); err != nil {
		t.Fatal(err)
	}
}
