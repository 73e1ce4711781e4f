package netboot

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/vm-test/netns"
	"github.com/slipway/slipway/vm-test/qemu"
)

// members are three pxed with one ledger, each on a host of its own, beside the
// network's DHCP server. The first one leads.
func (l *lab) members(t *testing.T) []*server {
	t.Helper()
	router(t, l)
	var all []*server
	var also []string
	for i := range 3 {
		at := netip.AddrFrom4([4]byte{10, 0, 2, byte(11 + i)})
		also = append(also, "--also", "http://"+netip.AddrPortFrom(at, 8080).String())
		all = append(all, &server{lab: l, host: netns.NewHost(t), at: at})
	}
	for i, s := range all {
		netns.Plug(t, l.bridge, s.host, fmt.Sprintf("52:54:00:00:00:%02x", 0xa0+i), s.at.String()+"/24")
		name := fmt.Sprintf("pxed%d", i+1)
		args := append([]string{"--mode", "proxy", "--ledger-address", netip.AddrPortFrom(s.at, 9000).String()}, also...)
		if i > 0 {
			args = append(args, "--join", netip.AddrPortFrom(all[0].at, 9000).String(), "--ledger-key", l.path("pxed1/ledger/ledger.pem"))
		}
		s.serve(t, name, "eth0", args...)
	}
	return all
}

// TestLeaderKilled kills the pxed that leads the ledger, and serves the image, in the
// middle of an install. The install goes on at another one, and nothing that was
// acknowledged is lost.
func TestLeaderKilled(t *testing.T) {
	full(t)
	l := newLab(t)
	all := l.members(t)
	leader, other := all[0], all[1]
	b := l.blank(t)
	v := b.installer(t, leader.armed(t, b))
	writing(t, leader, v)
	before := leader.events(t)
	leader.kill()
	step(t, v, "the leader is killed after %d events", len(before))
	sees(t, v, qemu.Like("asking "+netip.AddrPortFrom(other.at, 8080).String()+" next"))
	sees(t, v, qemu.Like("node n1 is installed on "))
	goesOff(t, v)
	step(t, v, "installed")
	for _, s := range all[1:] {
		kept(t, before, s.events(t))
	}
	v = b.powerOn(t)
	checkReceipt(t, other, becomesReady(t, other, v))
	off(t, v)
	checkDisk(t, l, b.disks[0].Path)
	leader.start(t)
	if m := leader.show(t); m.State != "installed" || m.Ready == nil {
		t.Errorf("the killed one is back, and says that n1 is %s", m.State)
	}
	kept(t, before, leader.events(t))
}

// kept checks that everything that was told once is still told.
func kept(t *testing.T, before, after []desk.Event) {
	t.Helper()
	if len(after) < len(before) {
		t.Errorf("of %d events %d are left", len(before), len(after))
		return
	}
	for i, e := range before {
		if after[i].Seq != e.Seq || after[i].Text != e.Text {
			t.Errorf("event %d was %q and is %q", e.Seq, e.Text, after[i].Text)
		}
	}
}
