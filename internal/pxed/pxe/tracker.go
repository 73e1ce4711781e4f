package pxe

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// Tracker notices machines that ask again and again and make nothing of what they
// are offered. It is told what happens and says, once an hour for each machine,
// what is probably wrong. The zero value is ready; it is not safe for concurrent use.
type Tracker struct {
	machines map[cluster.MAC]*attempt
	owners   map[netip.Addr]cluster.MAC
}

// attempt is one machine's way from an offer to its first boot file.
type attempt struct {
	offers int
	first  time.Time
	addr   netip.Addr // the lease that it was heard to take from another DHCP server
	told   time.Time
	ipxe   Client // zero unless iPXE that can load its script was the last to speak
}

// When a machine is thought to be stuck: firmware sends DISCOVER again after 4, 8,
// 16 and 32 s, so the third unused offer comes about 12 s after the first. Nothing
// is remembered for longer than attemptTime, so that two boots do not add up.
const (
	enoughOffers = 3
	attemptTime  = 5 * time.Minute
	repeatTime   = time.Hour
	maxTracked   = 4096
)

// Offered is told of an offer with something to boot. The text is not empty when
// it is time to say something.
func (t *Tracker) Offered(now time.Time, mac cluster.MAC, mode Mode) string {
	a := t.attempt(now, mac)
	a.offers++
	if a.offers < enoughOffers || !a.told.IsZero() && now.Sub(a.told) < repeatTime {
		return ""
	}
	a.told = now
	return a.diagnosis(mode)
}

func (a *attempt) diagnosis(mode Mode) string {
	asked := fmt.Sprintf("asked %d times and took no offer up", a.offers)
	switch {
	case mode == ModeDHCP:
		return asked + ": the answers do not arrive (a port of a switch that still learns, a firewall), or another DHCP server was faster"
	case a.addr.IsValid():
		return fmt.Sprintf("%s, though it took address %s from the network's DHCP server: its firmware ignores proxyDHCP, or TFTP (udp 69) does not get through. Use mode: dhcp (pxed serve --mode dhcp) on an isolated network, or have that DHCP server name the boot file (docs/NETBOOT.md)", asked, a.addr)
	default:
		return asked + ": its firmware ignores proxyDHCP, or no DHCP server on this network gives it an address. Use mode: dhcp (pxed serve --mode dhcp) if there is none, or have the network's DHCP server name the boot file (docs/NETBOOT.md)"
	}
}

// Leased is told that a machine was heard to take an address from another DHCP server.
func (t *Tracker) Leased(now time.Time, mac cluster.MAC, addr netip.Addr) {
	if !addr.IsValid() {
		return
	}
	t.attempt(now, mac).addr = addr
	t.owners[addr] = mac
}

// Spoke is told who of a machine's programs speaks: its firmware or iPXE.
func (t *Tracker) Spoke(now time.Time, c Client) {
	a := t.attempt(now, c.MAC)
	if a.ipxe = (Client{}); c.IPXE && c.HTTP {
		a.ipxe = c
	}
}

// IPXE is what iPXE said when it was the last to speak on a machine.
func (t *Tracker) IPXE(mac cluster.MAC) (Client, bool) {
	a := t.machines[mac]
	if a == nil {
		return Client{}, false
	}
	return a.ipxe, a.ipxe.IPXE
}

// Followed is told that a machine did what it was offered: asked on port 4011,
// loaded a file or asked for its script.
func (t *Tracker) Followed(mac cluster.MAC) {
	if a := t.machines[mac]; a != nil {
		a.offers = 0
	}
}

// Owner is the machine that was heard to take an address.
func (t *Tracker) Owner(addr netip.Addr) (cluster.MAC, bool) {
	mac, ok := t.owners[addr]
	return mac, ok
}

func (t *Tracker) attempt(now time.Time, mac cluster.MAC) *attempt {
	if t.machines == nil || len(t.machines) >= maxTracked && t.machines[mac] == nil {
		t.machines, t.owners = map[cluster.MAC]*attempt{}, map[netip.Addr]cluster.MAC{}
	}
	a := t.machines[mac]
	if a == nil {
		a = &attempt{first: now}
		t.machines[mac] = a
	}
	if a.offers == 0 || now.Sub(a.first) > attemptTime {
		a.first, a.offers = now, 0
	}
	return a
}
