package dhcpd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// ISC's dhclient and BusyBox's udhcpc get what the profile says. dhclient asks for
// unicast, so this is also the way of frames made by hand.
func TestRealClientsGetLeases(t *testing.T) {
	n := serve(t, pxe.ModeDHCP, nil)
	h := n.client(t, "52:54:00:67:00:aa")
	told := dhclient(t, h)
	for _, want := range []string{"reason=BOUND", "new_ip_address=10.67.0.11", "new_host_name=n1", "new_routers=10.67.0.254", "new_subnet_mask=255.255.255.0", "new_dhcp_lease_time=3600"} {
		if !strings.Contains(told, want+"\n") {
			t.Errorf("dhclient was not told %s:\n%s", want, told)
		}
	}
	n.wait(t, "none lease", "10.67.0.11 leased")
	if got := n.server.Leases(); len(got) != 1 || got[0].MAC != "52:54:00:67:00:aa" || got[0].State != lease.Bound {
		t.Errorf("leases: %+v", got)
	}
	if saved := n.leases(); len(saved) != 1 {
		t.Errorf("saved: %+v", saved)
	}

	bb := n.client(t, "52:54:00:67:00:bb")
	said := bb.Run(t, "busybox", "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-s", "/bin/true")
	if !strings.Contains(said, "lease of 10.67.0.1") {
		t.Errorf("udhcpc says %s", said)
	}

	p := discover(t, "52:54:00:67:00:bb", "")
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRelease))
	for _, l := range n.server.Leases() {
		if l.MAC == "52:54:00:67:00:bb" {
			p.ClientIPAddr = l.Addr.AsSlice()
			bb.Run(t, "ip", "addr", "add", l.Addr.String()+"/24", "dev", "eth0")
		}
	}
	tell(t, bb, p, "10.67.0.1:67")
	n.wait(t, "released")
}

// Without CAP_NET_RAW everybody is answered by broadcast, and understands it.
func TestBroadcastInsteadOfFrames(t *testing.T) {
	n := serve(t, pxe.ModeDHCP, nil, func(s *Server) {
		s.links[0].frames.close()
		s.links[0].frames = nil
	})
	if told := dhclient(t, n.client(t, "52:54:00:67:00:aa")); !strings.Contains(told, "10.67.0.11") {
		t.Errorf("dhclient was told %s", told)
	}
}

// A lease that cannot be kept is not given.
func TestNoLeaseWithoutStore(t *testing.T) {
	n := serve(t, pxe.ModeDHCP, nil)
	n.fails(errFull)
	h := n.client(t, "52:54:00:67:00:aa")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	out, err := h.Command(ctx, "busybox", "udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "1", "-T", "1", "-s", "/bin/true").CombinedOutput()
	if err == nil {
		t.Errorf("udhcpc got a lease:\n%s", out)
	}
	n.wait(t, "no lease can be given", "the disk is full")
}

type late struct{}

func (late) Verdict(ctx context.Context, _ pxe.Client) (pxe.Verdict, error) {
	<-ctx.Done()
	return pxe.OwnDisk, errors.Join(ctx.Err())
}
