package pxe

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// newReply is a reply of the given type with what every reply carries. yiaddr is
// zero until a lease is written into it: a proxy hands out no address.
func newReply(q Request, c Config, kind dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	p, r := q.Packet, q.Into
	if r == nil {
		r = &dhcpv4.DHCPv4{}
	}
	*r = dhcpv4.DHCPv4{
		OpCode:        dhcpv4.OpcodeBootReply,
		HWType:        p.HWType,
		TransactionID: p.TransactionID,
		Flags:         p.Flags,
		GatewayIPAddr: p.GatewayIPAddr,
		ClientHWAddr:  p.ClientHWAddr,
		Options:       emptied(r.Options),
	}
	r.Options[optMessageType] = []byte{byte(kind)}
	r.Options[optServerID] = c.Server.AsSlice()
	// RFC 6842: the client identifier comes back; PXE 2.1: so does the UUID;
	// RFC 3046: and what a relay has added.
	for _, code := range []uint8{optClientID, optUUID, optRelay} {
		if v, ok := p.Options[code]; ok {
			r.Options[code] = v
		}
	}
	return r
}

// emptied is a map to use again, or a new one.
func emptied(o dhcpv4.Options) dhcpv4.Options {
	if o == nil {
		return make(dhcpv4.Options, usualOptions)
	}
	clear(o)
	return o
}

// usualOptions is how many options a reply has, at most times.
const usualOptions = 16

// leaseReply is an OFFER or ACK with the lease that was granted.
func leaseReply(q Request, c Config) *dhcpv4.DHCPv4 {
	kind := dhcpv4.MessageTypeAck
	if q.Client.Type == dhcpv4.MessageTypeDiscover {
		kind = dhcpv4.MessageTypeOffer
	}
	r := newReply(q, c, kind)
	r.ClientIPAddr = q.Packet.ClientIPAddr
	o := r.Options
	if q.Grant.Kind == GrantAddress { // not for INFORM: that client has an address of its own (RFC 2131 section 3.4)
		r.YourIPAddr = q.Grant.Addr.AsSlice()
		o[optLeaseTime] = seconds(q.Grant.Time)
		o[optRenewal] = seconds(q.Grant.Time / 2)
		o[optRebinding] = seconds(q.Grant.Time * 7 / 8)
	}
	c.Lease.write(o)
	if q.Grant.Host != "" {
		o[optHostName] = []byte(q.Grant.Host)
	}
	if q.Client.IPXE { // there is no proxy beside us: spare iPXE the wait for one
		o[optIPXE] = []byte{ipxeNoProxyDHCP, 1, 1, optionEnd}
	}
	return r
}

func (l LeaseOptions) write(o dhcpv4.Options) {
	mask := ^uint32(0) << (32 - max(l.Network.Bits(), 0))
	o[optSubnetMask] = binary.BigEndian.AppendUint32(nil, mask)
	base := binary.BigEndian.Uint32(l.Network.Masked().Addr().AsSlice())
	o[optBroadcast] = binary.BigEndian.AppendUint32(nil, base|^mask)
	if l.Router.IsValid() {
		o[optRouter] = l.Router.AsSlice()
	}
	if len(l.DNS) > 0 {
		o[optDNS] = addresses(l.DNS)
	}
	if len(l.NTP) > 0 {
		o[optNTP] = addresses(l.NTP)
	}
	if l.Domain != "" {
		o[optDomain] = []byte(l.Domain)
	}
}

func addresses(list []netip.Addr) []byte {
	var out []byte
	for _, a := range list {
		out = append(out, a.AsSlice()...)
	}
	return out
}

func seconds(d time.Duration) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(d/time.Second))
}
