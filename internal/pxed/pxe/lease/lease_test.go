package lease

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

var (
	server = netip.MustParseAddr("192.0.2.1")
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func small() Config {
	return Config{
		Network: netip.MustParsePrefix("192.0.2.0/24"), First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.13"),
		Taken:    []netip.Addr{netip.MustParseAddr("192.0.2.11")},
		Reserved: []Reservation{{MAC: "52:54:00:00:00:aa", Addr: netip.MustParseAddr("192.0.2.50"), Host: "n1"}, {MAC: "52:54:00:00:00:bb", Addr: netip.MustParseAddr("192.0.2.12"), Host: "n2"}},
	}
}

func table(t *testing.T, c Config, kept ...Lease) *Table {
	t.Helper()
	out, err := New(c, kept)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask is one message of a client; an address that is "" is not given.
func ask(t *Table, now time.Time, kind dhcpv4.MessageType, mac cluster.MAC, to, wanted, has string) Answer {
	p := &dhcpv4.DHCPv4{Options: dhcpv4.Options{}}
	if to != "" {
		p.Options.Update(dhcpv4.OptServerIdentifier(netip.MustParseAddr(to).AsSlice()))
	}
	if wanted != "" {
		p.Options.Update(dhcpv4.OptRequestedIPAddress(netip.MustParseAddr(wanted).AsSlice()))
	}
	if has != "" {
		p.ClientIPAddr = netip.MustParseAddr(has).AsSlice()
	}
	return t.Answer(now, p, pxe.Client{MAC: mac, Type: kind}, server)
}

const (
	discover = dhcpv4.MessageTypeDiscover
	demand   = dhcpv4.MessageTypeRequest
	release  = dhcpv4.MessageTypeRelease
	decline  = dhcpv4.MessageTypeDecline
	inform   = dhcpv4.MessageTypeInform
	a        = cluster.MAC("52:54:00:00:00:01")
	b        = cluster.MAC("52:54:00:00:00:02")
	n1       = cluster.MAC("52:54:00:00:00:aa")
)

func lease(t *testing.T, tab *Table, now time.Time, mac cluster.MAC) string {
	t.Helper()
	offer := ask(tab, now, discover, mac, "", "", "")
	if offer.Kind != pxe.GrantAddress || offer.Save != nil {
		t.Fatalf("offer: %+v", offer)
	}
	ack := ask(tab, now, demand, mac, "192.0.2.1", offer.Addr.String(), "")
	if ack.Kind != pxe.GrantAddress || ack.Addr != offer.Addr || ack.Save == nil || ack.Save.State != Bound {
		t.Fatalf("ack: %+v", ack)
	}
	return ack.Addr.String()
}

func TestOneAddressFromPowerOnToTheNode(t *testing.T) {
	tab := table(t, small())
	first := lease(t, tab, start, a)
	if again := lease(t, tab, start.Add(time.Second), a); again != first {
		t.Errorf("firmware got %s, iPXE %s", first, again)
	}
	lost := table(t, small()) // a machine finds its address again when the leases are lost
	if again := lease(t, lost, start, a); again != first {
		t.Errorf("after the loss of all leases %s became %s", first, again)
	}
}

// The rules of RFC 2131 section 4.3.2 for a client a with a lease, and b without.
func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		mac             cluster.MAC
		to, wanted, has string
		kind            pxe.GrantKind
		why             string
	}{
		"selecting another server":             {a, "192.0.2.9", "192.0.2.10", "", pxe.GrantNone, "took the offer of 192.0.2.9"},
		"selecting what was not offered":       {a, "192.0.2.1", "192.0.2.200", "", pxe.GrantNak, "not what was offered"},
		"selecting an offer from before":       {b, "192.0.2.1", "FREE", "", pxe.GrantAddress, "old offer"},
		"selecting the lease of another":       {b, "192.0.2.1", "LEASE", "", pxe.GrantNak, "not what was offered"},
		"rebooting with its lease":             {a, "", "LEASE", "", pxe.GrantAddress, "confirmed"},
		"rebooting with another address":       {a, "", "FREE", "", pxe.GrantNak, "not yours"},
		"rebooting from another network":       {a, "", "198.51.100.7", "", pxe.GrantNak, "not an address of this network"},
		"rebooting unknown":                    {b, "", "FREE", "", pxe.GrantNone, "no record"},
		"rebooting unknown, another network":   {b, "", "198.51.100.7", "", pxe.GrantNak, "not an address of this network"},
		"rebooting with a reservation":         {n1, "", "192.0.2.50", "", pxe.GrantAddress, "confirmed"},
		"rebooting against its reservation":    {n1, "", "FREE", "", pxe.GrantNak, "not yours"},
		"renewing":                             {a, "", "", "LEASE", pxe.GrantAddress, "renewed"},
		"renewing the lease of another":        {b, "", "", "LEASE", pxe.GrantNak, "not yours"},
		"renewing what a restart forgot":       {b, "", "", "FREE", pxe.GrantAddress, "renewed"},
		"renewing from another network":        {a, "", "", "198.51.100.7", pxe.GrantNak, "not an address of this network"},
		"renewing what is reserved for others": {a, "", "", "192.0.2.50", pxe.GrantNak, "not yours"},
		"renewing the router's address":        {a, "", "", "192.0.2.11", pxe.GrantNak, "not yours"},
		"asking for nothing":                   {a, "", "", "", pxe.GrantNone, "without an address"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := table(t, small())
			mine := lease(t, tab, start, a)
			free := "192.0.2.10"
			if mine == free {
				free = "192.0.2.13"
			}
			fill := strings.NewReplacer("LEASE", mine, "FREE", free).Replace
			got := ask(tab, start.Add(time.Minute), demand, c.mac, c.to, fill(c.wanted), fill(c.has))
			if got.Kind != c.kind || !strings.Contains(got.Why, c.why) {
				t.Errorf("got %+v", got)
			}
			if saved := got.Save != nil; saved != (c.kind == pxe.GrantAddress) {
				t.Errorf("saved: %v", saved)
			}
		})
	}
}

func TestReservation(t *testing.T) {
	tab := table(t, small())
	got := ask(tab, start, discover, n1, "", "192.0.2.10", "")
	if got.Addr.String() != "192.0.2.50" || got.Host != "n1" {
		t.Errorf("got %+v", got)
	}
}

func TestPoolIsUsedUpAndComesBack(t *testing.T) {
	tab := table(t, small()) // two usable addresses: .10 and .13
	lease(t, tab, start, a)
	lease(t, tab, start, b)
	third := ask(tab, start, discover, "52:54:00:00:00:03", "", "", "")
	if third.Kind != pxe.GrantNone || !third.Notable || !strings.Contains(third.Why, "no free address") {
		t.Errorf("got %+v", third)
	}
	later := start.Add(defaultTime)
	if got := ask(tab, later, discover, "52:54:00:00:00:03", "", "", ""); got.Kind != pxe.GrantAddress {
		t.Errorf("after the leases ended: %+v", got)
	}
}

func TestReleaseAndDecline(t *testing.T) {
	tab := table(t, small())
	mine := lease(t, tab, start, a)
	if got := ask(tab, start, release, b, "", "", mine); got.Save != nil {
		t.Errorf("b released the lease of a: %+v", got)
	}
	got := ask(tab, start, release, a, "192.0.2.1", "", mine)
	if got.Kind != pxe.GrantNone || got.Save == nil || start.Before(got.Save.Expires) {
		t.Errorf("release: %+v", got)
	}
	if again := lease(t, tab, start, a); again != mine {
		t.Errorf("a came back to %s, not %s", again, mine)
	}
	got = ask(tab, start, decline, a, "192.0.2.1", mine, "")
	if got.Kind != pxe.GrantNone || !got.Notable || got.Save == nil || got.Save.State != Declined || got.Save.MAC != "" {
		t.Errorf("decline: %+v", got)
	}
	if again := lease(t, tab, start, a); again == mine {
		t.Errorf("the declined address %s was given again", mine)
	}
	if _, known := tab.Owner(netip.MustParseAddr(mine)); known {
		t.Error("a declined address has an owner")
	}
}

func TestInformGetsNoAddress(t *testing.T) {
	got := ask(table(t, small()), start, inform, a, "", "", "192.0.2.77")
	if got.Kind != pxe.GrantInform || got.Save != nil {
		t.Errorf("got %+v", got)
	}
}

func TestRestart(t *testing.T) {
	tab := table(t, small())
	mine := lease(t, tab, start, a)
	kept := append(tab.Leases(), Lease{Addr: netip.MustParseAddr("203.0.113.1"), MAC: b, State: Bound, Expires: start.Add(time.Hour)})
	tab = table(t, small(), kept...)
	if got := tab.Leases(); len(got) != 1 || got[0].Addr.String() != mine {
		t.Errorf("kept %v", got)
	}
	if got := ask(tab, start, discover, b, "", mine, ""); got.Addr.String() == mine {
		t.Error("a kept lease was offered to another machine")
	}
}

func TestConfigCheck(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"":                   func(*Config) {},
		"not an IPv4 range":  func(c *Config) { c.Network = netip.MustParsePrefix("fd00::/64") },
		"not a range":        func(c *Config) { c.First, c.Last = c.Last, c.First },
		"does not lie":       func(c *Config) { c.Last = netip.MustParseAddr("192.0.2.255") },
		"less than a minute": func(c *Config) { c.Time = time.Second },
		"not inside":         func(c *Config) { c.Reserved[0].Addr = netip.MustParseAddr("203.0.113.1") },
		"two reserved":       func(c *Config) { c.Reserved[0].MAC = c.Reserved[1].MAC },
		"for two machines":   func(c *Config) { c.Reserved[0].Addr = c.Reserved[1].Addr },
	} {
		c := small()
		change(&c)
		err := c.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Whatever clients do, no two of them are bound to one address at the same time,
// and nobody gets an address that is not to be given.
func TestNeverTwoOwners(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		tab, now := table(t, small()), start
		bound := map[string]Lease{}
		for step := range 400 {
			now = now.Add(time.Duration(r.IntN(600)) * time.Second)
			mac := cluster.MAC(fmt.Sprintf("52:54:00:00:00:%02x", r.IntN(5)))
			addr := []string{"", "192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.50"}
			kind := []dhcpv4.MessageType{discover, demand, demand, demand, release, decline, inform}[r.IntN(7)]
			to := []string{"", "192.0.2.1", "192.0.2.9"}[r.IntN(3)]
			got := ask(tab, now, kind, mac, to, addr[r.IntN(6)], addr[r.IntN(6)])
			if got.Save == nil {
				continue
			}
			l := *got.Save
			if l.State == Bound && now.Before(l.Expires) {
				if other, ok := bound[l.Addr.String()]; ok && other.MAC != mac && now.Before(other.Expires) {
					t.Fatalf("seed %d step %d: %s belongs to %s and %s", seed, step, l.Addr, other.MAC, mac)
				}
				if !tab.mayHave(mac, l.Addr) {
					t.Fatalf("seed %d step %d: %s got %s", seed, step, mac, l.Addr)
				}
			}
			for addr, other := range bound { // who takes another address gives up the old one
				if other.MAC == mac {
					delete(bound, addr)
				}
			}
			bound[l.Addr.String()] = l
		}
	}
}
