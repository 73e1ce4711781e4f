package lease

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

// Answer is what the leases say about a request, and what must be durable before
// anybody is told: Save when it is not nil. An OFFER promises nothing that must
// survive, so only DHCPREQUEST, RELEASE and DECLINE save.
type Answer struct {
	pxe.Grant
	Save *Lease // Expires in the past means: forget it
}

// request is what the rules of RFC 2131 section 4.3 look at.
type request struct {
	mac    cluster.MAC
	host   string
	server netip.Addr // option 54
	wanted netip.Addr // option 50
	has    netip.Addr // ciaddr
}

// Answer decides about the lease of one request. server is our identifier.
func (t *Table) Answer(now time.Time, p *dhcpv4.DHCPv4, c pxe.Client, server netip.Addr) Answer {
	q := request{
		mac: c.MAC, host: c.HostName,
		server: option(p, dhcpv4.OptionServerIdentifier), wanted: option(p, dhcpv4.OptionRequestedIPAddress),
		has: given(p.ClientIPAddr),
	}
	switch c.Type {
	case dhcpv4.MessageTypeDiscover:
		return t.discover(now, q)
	case dhcpv4.MessageTypeRequest:
		return t.request(now, q, server)
	case dhcpv4.MessageTypeRelease:
		return t.release(now, q)
	case dhcpv4.MessageTypeDecline:
		return t.decline(now, q, server)
	case dhcpv4.MessageTypeInform:
		return Answer{Grant: pxe.Grant{Kind: pxe.GrantInform, Why: "options only, as asked"}}
	default:
		return nothing("%s is not for a server", c.Type)
	}
}

func option(p *dhcpv4.DHCPv4, code dhcpv4.OptionCode) netip.Addr {
	return given(p.Options.Get(code))
}

// given is an address that was filled in.
func given(b []byte) netip.Addr {
	a, ok := netip.AddrFromSlice(b)
	if a = a.Unmap(); !ok || !a.Is4() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

func nothing(why string, args ...any) Answer {
	return Answer{Grant: pxe.Grant{Why: fmt.Sprintf(why, args...)}}
}

func nak(why string, args ...any) Answer {
	return Answer{Grant: pxe.Grant{Kind: pxe.GrantNak, Why: fmt.Sprintf(why, args...)}}
}

func (t *Table) discover(now time.Time, q request) Answer {
	a, ok := t.choose(now, q.mac, q.wanted)
	if !ok {
		full := nothing("no free address for %s", q.mac)
		full.Notable = true
		return full
	}
	if l, ok := t.of(q.mac); !ok || l.Addr != a || l.State != Bound || !now.Before(l.Expires) {
		t.put(Lease{Addr: a, MAC: q.mac, Host: q.host, State: Offered, Expires: now.Add(offerTime)})
	}
	return t.grant(a, q.mac, a.String()+" offered")
}

func (t *Table) grant(a netip.Addr, mac cluster.MAC, why string) Answer {
	return Answer{Grant: pxe.Grant{Kind: pxe.GrantAddress, Addr: a, Time: t.cfg.Time, Host: t.static[mac].Host, Why: why}}
}

// request answers a DHCPREQUEST in the four states that a client can be in
// (RFC 2131 section 4.3.2, table 4 in section 4.3.6).
func (t *Table) request(now time.Time, q request, server netip.Addr) Answer {
	l, known := t.of(q.mac)
	switch {
	case q.server.IsValid() && q.server != server:
		if known && l.State == Offered {
			t.drop(number(l.Addr))
		}
		return nothing("took the offer of %s", q.server)
	case q.server.IsValid(): // SELECTING
		if !known || l.Addr != q.wanted {
			return t.late(now, q)
		}
		return t.bind(now, q, q.wanted, "leased")
	case q.has.IsValid(): // RENEWING, REBINDING
		return t.renew(now, q)
	case q.wanted.IsValid(): // INIT-REBOOT
		return t.reboot(now, q)
	default:
		return nothing("a REQUEST without an address")
	}
}

// late answers who comes back with an offer that was made before a restart of
// pxed, or too long ago. The address is his if it still can be.
func (t *Table) late(now time.Time, q request) Answer {
	if a, ok := t.choose(now, q.mac, q.wanted); ok && a == q.wanted {
		return t.bind(now, q, a, "leased on an old offer")
	}
	return nak("%s is not what was offered", q.wanted)
}

func (t *Table) renew(now time.Time, q request) Answer {
	switch {
	case !t.cfg.Network.Contains(q.has):
		return nak("%s is not an address of this network", q.has)
	case !t.mayHave(q.mac, q.has) || !t.isFree(now, q.mac, q.has):
		return nak("%s is not yours", q.has)
	}
	return t.bind(now, q, q.has, "renewed")
}

func (t *Table) reboot(now time.Time, q request) Answer {
	l, known := t.of(q.mac)
	_, reserved := t.static[q.mac]
	switch {
	case !t.cfg.Network.Contains(q.wanted):
		return nak("%s is not an address of this network", q.wanted)
	case !known && !reserved: // the rule of section 4.3.2: who has no record keeps silent
		return nothing("no record of a lease of %s", q.wanted)
	case !t.mayHave(q.mac, q.wanted) || !t.isFree(now, q.mac, q.wanted) || known && l.Addr != q.wanted:
		return nak("%s is not yours", q.wanted)
	}
	return t.bind(now, q, q.wanted, "confirmed")
}

func (t *Table) bind(now time.Time, q request, a netip.Addr, how string) Answer {
	l := Lease{Addr: a, MAC: q.mac, Host: q.host, State: Bound, Expires: now.Add(t.cfg.Time)}
	t.put(l)
	out := t.grant(a, q.mac, a.String()+" "+how)
	out.Save = &l
	return out
}

// release takes a lease back. It is kept as an expired one, so that the machine
// gets the same address when it comes again and nobody else needed it.
func (t *Table) release(now time.Time, q request) Answer {
	l, known := t.of(q.mac)
	if !known || l.Addr != q.has {
		return nothing("released %s, which it does not have", q.has)
	}
	l.State, l.Expires = Bound, now
	t.put(l)
	out := nothing("%s released", q.has)
	out.Save = &l
	return out
}

// decline sets an address aside that a client has found in use.
func (t *Table) decline(now time.Time, q request, server netip.Addr) Answer {
	l, known := t.of(q.mac)
	if !known || l.Addr != q.wanted || q.server.IsValid() && q.server != server {
		return nothing("declined %s, which it does not have", q.wanted)
	}
	t.drop(number(l.Addr))
	bad := Lease{Addr: q.wanted, State: Declined, Expires: now.Add(declinedTime)}
	t.put(bad)
	out := nothing("%s is in use by a machine that did not ask for it; set aside for %s", q.wanted, declinedTime)
	out.Notable = true
	out.Save = &bad
	return out
}
