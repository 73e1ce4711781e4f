package pxe

import (
	"fmt"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// The ports of DHCP. PortPXE is where firmware asks a proxyDHCP server again
// (PXE 2.1 section 2.2.4).
const (
	PortServer = 67
	PortClient = 68
	PortPXE    = 4011
)

// Request is one packet and what else counts for its answer.
type Request struct {
	Packet  *dhcpv4.DHCPv4
	Client  Client         // of Packet, by Classify
	Port    uint16         // PortServer or PortPXE: where it arrived
	From    netip.AddrPort // who sent it
	Verdict Verdict        // what is known about the machine
	Grant   Grant          // what package lease says; ModeDHCP only
	Into    *dhcpv4.DHCPv4 // memory for the reply that may be used again; nil: new
}

// Gave is what a machine got, in one word for logs and metrics.
type Gave string

// What a machine can get.
const (
	GaveNothing Gave = "nothing"
	GaveIPXE    Gave = "ipxe"     // the boot loader of the first stage
	GaveScript  Gave = "script"   // the address of iPXE's script
	GaveOwnDisk Gave = "own-disk" // word to start what it has
	GaveLease   Gave = "lease"    // an address and nothing to boot
	GaveNak     Gave = "nak"
)

// Decision is the answer to a request. Reply is nil when the answer is silence.
type Decision struct {
	Reply   *dhcpv4.DHCPv4
	To      Destination
	Gave    Gave
	Why     string // one clause, for the log
	Notable bool   // whoever waits for this machine wants to read Why
}

func silence(why string, args ...any) Decision {
	return Decision{Gave: GaveNothing, Why: fmt.Sprintf(why, args...)}
}

func refusal(why string, args ...any) Decision {
	d := silence(why, args...)
	d.Notable = true
	return d
}

// Decide answers a request.
func Decide(q Request, c Config) Decision {
	switch {
	case q.Packet.OpCode != dhcpv4.OpcodeBootRequest:
		return silence("a reply, not a request")
	case q.Client.Type == dhcpv4.MessageTypeNone:
		return silence("BOOTP without DHCP")
	case q.Client.MAC == "":
		return silence("no Ethernet address")
	case q.Verdict == Ignore:
		return silence("told to ignore this machine")
	case q.Port == PortPXE:
		return decidePXE(q, c)
	case c.Mode == ModeDHCP:
		return decideDHCP(q, c)
	default:
		return decideProxy(q, c)
	}
}

// decideProxy adds an offer to those of the network's own DHCP server. Only
// DISCOVER is answered: a REQUEST on port 67 is about a lease, and a second
// answer to it makes firmware take an address that nobody leased.
func decideProxy(q Request, c Config) Decision {
	switch {
	case !q.Client.IsPXE():
		return silence("no netboot client")
	case q.Client.Type != dhcpv4.MessageTypeDiscover:
		return silence("%s belongs to the DHCP server of this network", q.Client.Type)
	}
	b := bootOf(q, c)
	if b.gave == GaveNothing {
		return refusal("%s", b.why)
	}
	r := newReply(q, c, dhcpv4.MessageTypeOffer)
	b.write(r, q.Client)
	return answer(q, r, b.gave, b.why)
}

// decidePXE answers firmware that asks again on port 4011, in either mode. It has
// an address by now, and says so.
func decidePXE(q Request, c Config) Decision {
	switch {
	case !q.Client.IsPXE():
		return silence("no netboot client")
	case q.Client.Type != dhcpv4.MessageTypeRequest && q.Client.Type != dhcpv4.MessageTypeInform:
		return silence("%s on port %d", q.Client.Type, PortPXE)
	}
	b := bootOf(q, c)
	if b.gave == GaveNothing {
		return refusal("%s", b.why)
	}
	r := newReply(q, c, dhcpv4.MessageTypeAck)
	r.ClientIPAddr = q.Packet.ClientIPAddr
	b.write(r, q.Client)
	return answer(q, r, b.gave, b.why)
}

// decideDHCP answers as the network's only DHCP server: everybody gets a lease,
// and netboot clients in the same packet what to boot.
func decideDHCP(q Request, c Config) Decision {
	switch q.Grant.Kind {
	case GrantNone:
		return Decision{Gave: GaveNothing, Why: q.Grant.Why, Notable: q.Grant.Notable}
	case GrantNak:
		r := newReply(q, c, dhcpv4.MessageTypeNak)
		r.Options[optMessage] = []byte(q.Grant.Why)
		return answer(q, r, GaveNak, q.Grant.Why)
	}
	r := leaseReply(q, c)
	if !q.Client.IsPXE() {
		return answer(q, r, GaveLease, q.Grant.Why)
	}
	b := bootOf(q, c)
	if b.gave == GaveNothing { // the lease is given all the same: the system on the disk needs one too
		d := answer(q, r, GaveLease, b.why)
		d.Notable = true
		return d
	}
	b.write(r, q.Client)
	return answer(q, r, b.gave, q.Grant.Why+"; "+b.why)
}

func answer(q Request, r *dhcpv4.DHCPv4, gave Gave, why string) Decision {
	return Decision{Reply: r, To: destination(q, r), Gave: gave, Why: why}
}
