package pxe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// The library reads and writes messages as well, and the tests hold these two
// functions against it. They are here because it copies every field and option to
// memory of its own, which was half of what an answer cost.

// The layout of a message (RFC 2131 section 2), in bytes.
const (
	atHardware = 28
	atServer   = 44
	atFile     = 108
	atCookie   = 236
	atOptions  = 240
	leastSize  = 300 // RFC 951: relays drop what is shorter than a BOOTP message
	hardware   = 16  // the field for the hardware address
)

// cookie says that options follow (RFC 2131 section 3).
const cookie = 0x63825363

var errCut = errors.New("the message is cut off")

// Parse reads a message into p, whose memory is used again. What is in p then lies
// in b and is valid as long as b is.
func Parse(b []byte, p *dhcpv4.DHCPv4) error {
	switch {
	case len(b) < atOptions:
		return errCut
	case binary.BigEndian.Uint32(b[atCookie:]) != cookie:
		return fmt.Errorf("% x is not the magic cookie", b[atCookie:atOptions])
	}
	options := emptied(p.Options)
	*p = dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeType(b[0]), HWType: iana.HWType(b[1]), HopCount: b[3], TransactionID: dhcpv4.TransactionID(b[4:8]),
		NumSeconds: binary.BigEndian.Uint16(b[8:]), Flags: binary.BigEndian.Uint16(b[10:]),
		ClientIPAddr: part(b, 12, 4), YourIPAddr: part(b, 16, 4), ServerIPAddr: part(b, 20, 4), GatewayIPAddr: part(b, 24, 4),
		ClientHWAddr:   part(b, atHardware, min(int(b[2]), hardware)),
		ServerHostName: untilNUL(b[atServer:atFile]), BootFileName: untilNUL(b[atFile:atCookie]),
		Options: options,
	}
	return parseOptions(b[atOptions:], options)
}

// part is n bytes of b; who appends to it does not write into what follows.
func part(b []byte, at, n int) []byte { return b[at : at+n : at+n] }

func untilNUL(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// parseOptions reads options up to the end option, which must be there unless there
// is none at all. An option that comes several times is one (RFC 3396).
func parseOptions(b []byte, out dhcpv4.Options) error {
	for at := 0; at < len(b); {
		code := b[at]
		switch {
		case code == optionEnd:
			return nil
		case code == optionPad:
			at++
			continue
		case at+2 > len(b) || at+2+int(b[at+1]) > len(b):
			return errCut
		}
		n := int(b[at+1])
		value := part(b, at+2, n)
		if before, twice := out[code]; twice {
			value = append(before, value...)
		}
		out[code] = value
		at += 2 + n
	}
	if len(b) == 0 {
		return nil
	}
	return errCut
}

// Append appends the message to b. Options stand in the order of their codes, but
// that of a relay is the last (RFC 3046 section 2.1).
func Append(b []byte, p *dhcpv4.DHCPv4) []byte {
	start := len(b)
	b = slices.Grow(b, leastSize)[:start+atOptions]
	h := b[start:]
	clear(h)
	h[0], h[1], h[2], h[3] = byte(p.OpCode), byte(p.HWType), byte(len(p.ClientHWAddr)), p.HopCount
	copy(h[4:], p.TransactionID[:])
	binary.BigEndian.PutUint16(h[8:], p.NumSeconds)
	binary.BigEndian.PutUint16(h[10:], p.Flags)
	for i, ip := range [...][]byte{p.ClientIPAddr, p.YourIPAddr, p.ServerIPAddr, p.GatewayIPAddr} {
		if a, ok := netip.AddrFromSlice(ip); ok && a.Unmap().Is4() {
			copy(h[12+4*i:], a.Unmap().AsSlice())
		}
	}
	copy(h[atHardware:atHardware+hardware], p.ClientHWAddr)
	copy(h[atServer:atFile-1], p.ServerHostName) // each ends with NUL
	copy(h[atFile:atCookie-1], p.BootFileName)
	binary.BigEndian.PutUint32(h[atCookie:], cookie)
	b = append(appendOptions(b, p.Options), optionEnd)
	for len(b) < start+leastSize {
		b = append(b, optionPad)
	}
	return b
}

func appendOptions(b []byte, options dhcpv4.Options) []byte {
	codes := make([]byte, 0, 2*usualOptions)
	for code := range options {
		if code != optRelay && code != optionEnd && code != optionPad {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	if _, ok := options[optRelay]; ok {
		codes = append(codes, optRelay)
	}
	for _, code := range codes {
		b = appendOption(b, code, options[code])
	}
	return b
}

// appendOption writes a value that is too long for one option as several (RFC 3396).
func appendOption(b []byte, code byte, value []byte) []byte {
	const most = 255
	for len(value) > most {
		b = append(append(b, code, most), value[:most]...)
		value = value[most:]
	}
	return append(append(b, code, byte(len(value))), value...)
}
