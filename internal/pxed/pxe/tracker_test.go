package pxe

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

func TestTracker(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	offers := func(tr *Tracker, mode Mode, at ...time.Duration) string {
		said := ""
		for _, d := range at {
			said += tr.Offered(now.Add(d), machineMAC, mode)
		}
		return said
	}
	repeated := []time.Duration{0, 4 * time.Second, 12 * time.Second}

	if said := offers(&Tracker{}, ModeProxy, repeated...); !strings.Contains(said, "asked 3 times") || !strings.Contains(said, "ignores proxyDHCP") || !strings.Contains(said, "mode: dhcp") {
		t.Errorf("got %q", said)
	}
	if said := offers(&Tracker{}, ModeProxy, repeated[:2]...); said != "" {
		t.Errorf("too early: %q", said)
	}
	if said := offers(&Tracker{}, ModeProxy, 0, 6*time.Minute, 12*time.Minute); said != "" {
		t.Errorf("three boots were taken for one: %q", said)
	}
	if said := offers(&Tracker{}, ModeDHCP, repeated...); strings.Contains(said, "proxy") {
		t.Errorf("got %q", said)
	}
	var leased Tracker
	leased.Leased(now, machineMAC, netip.MustParseAddr("10.77.0.9"))
	if said := offers(&leased, ModeProxy, repeated...); !strings.Contains(said, "took address 10.77.0.9") {
		t.Errorf("got %q", said)
	}
	if mac, ok := leased.Owner(netip.MustParseAddr("10.77.0.9")); !ok || mac != machineMAC {
		t.Errorf("owner %q", mac)
	}
	var fine Tracker
	for i := range 10 {
		if said := offers(&fine, ModeProxy, time.Duration(i)*time.Second); said != "" {
			t.Errorf("a machine that follows: %q", said)
		}
		fine.Followed(machineMAC)
	}
	var once Tracker
	if said := offers(&once, ModeProxy, 0, 1, 2, 3, 4, 5, 6); strings.Count(said, "asked") != 1 {
		t.Errorf("said %q", said)
	}
	var stages Tracker
	firmware, ipxe := Classify(packet(t, "ovmf-discover")), Classify(packet(t, "ipxe-snponly-discover"))
	for _, c := range []Client{firmware, ipxe, firmware} {
		stages.Spoke(now, c)
		if got, ok := stages.IPXE(machineMAC); ok != c.IPXE || ok && string(Script("http://h", got)) != "#!ipxe\nchain --replace --autofree http://h/boot/ipxe?mac="+machineMAC+"&uuid=${uuid}&serial=${serial:uristring}&firmware=uefi\n" {
			t.Errorf("iPXE speaks: %v %+v", ok, got)
		}
	}
	var many Tracker
	for i := range 3 * maxTracked {
		many.Offered(now, cluster.MAC(fmt.Sprint(i)), ModeProxy)
	}
	if len(many.machines) > maxTracked {
		t.Errorf("%d machines are remembered", len(many.machines))
	}
}
