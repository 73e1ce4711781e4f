package machine

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// Key is how the ledger names a machine: "mac:…", "serial:…" or "uuid:…". It is
// chosen once, when the machine is seen first, and never changes.
type Key string

// Junk reports why a serial number or UUID identifies nothing, or "" when it may.
// Boards leave the factory with these values in their SMBIOS tables, whole batches
// with the same one; the lists are what is seen in the field.
func Junk(value string) string {
	v := strings.ToLower(strings.TrimSpace(value))
	switch {
	case v == "":
		return "it is empty"
	case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }):
		return "it holds characters that no label has"
	case len(significant(v)) < 2:
		return fmt.Sprintf("%q says nothing", value)
	case strings.Count(significant(v), significant(v)[:1]) == len(significant(v)):
		return fmt.Sprintf("%q is one character repeated", value)
	case placeholders[v], strings.HasPrefix(v, "to be filled"), strings.HasPrefix(v, "not "):
		return fmt.Sprintf("%q is a placeholder of the vendor", value)
	case len(v) >= 4 && (strings.HasPrefix("01234567890123456789", v) || strings.HasPrefix("12345678901234567890", v)):
		return fmt.Sprintf("%q is counting, not a number", value)
	}
	return ""
}

// significant leaves out what separates.
func significant(v string) string {
	return strings.NewReplacer("-", "", ":", "", ".", "", " ", "", "_", "", "/", "").Replace(v)
}

// placeholders are values, in lower case, that vendors put where an identity belongs.
var placeholders = map[string]bool{
	"03000200-0400-0500-0006-000700080009": true, "00020003-0004-0005-0006-000700080009": true,
	"12345678-1234-5678-90ab-cddeefaabbcc": true, "12345678-1234-1234-1234-123456789abc": true,
	"01234567-89ab-cdef-0123-456789abcdef": true, "00112233-4455-6677-8899-aabbccddeeff": true,
	"01020304-0506-0708-090a-0b0c0d0e0f10": true,
	"default string":                       true, "default": true, "system serial number": true, "systemserialnumb": true, "serial number": true,
	"chassis serial number": true, "base board serial number": true, "baseboard serial number": true,
	"product serial number": true, "sernum": true, "type1sn": true, "o.e.m.": true, "oem": true,
	"by o.e.m.": true, "none": true, "null": true, "n/a": true, "na": true, "unknown": true, "empty": true,
	"invalid": true, "undefined": true, "standard": true, "no serial": true, "sample": true, "test": true,
	"0123456789abcdef": true, "123456789abcdef": true, "abcdefghijklmnop": true,
}

// ParseMAC brings a hardware address in any of the usual forms into the canonical
// one. Multicast, broadcast and zero addresses belong to no machine.
func ParseMAC(s string) (cluster.MAC, error) {
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.ToLower(s))
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("not a MAC address: %.40q", s)
	}
	if digits == "000000000000" || strings.ContainsAny(digits[1:2], "13579bdf") {
		return "", fmt.Errorf("%s is no machine's MAC address", s)
	}
	pairs := make([]string, 6)
	for i := range pairs {
		pairs[i] = digits[2*i : 2*i+2]
	}
	return cluster.MAC(strings.Join(pairs, ":")), nil
}

// canonical is the form in which serials and UUIDs are compared: firmware, iPXE
// and Linux agree on neither case nor padding.
func canonical(value string) string { return strings.ToLower(strings.TrimSpace(value)) }

// Usable is the canonical value, or "" when it is junk.
func Usable(value string) string {
	if Junk(value) != "" {
		return ""
	}
	return canonical(value)
}

// Keys are all names of a machine that has these addresses and this identity, the
// one to trust most first. Addresses lead: every request has one, and whole
// batches of cheap boards share a serial number and a UUID.
func Keys(macs []cluster.MAC, id Identity) []Key {
	var out []Key
	for _, m := range macs {
		out = append(out, Key("mac:"+string(m)))
	}
	if v := Usable(id.Serial); v != "" {
		out = append(out, Key("serial:"+v))
	}
	if v := Usable(id.UUID); v != "" {
		out = append(out, Key("uuid:"+v))
	}
	return out
}

// Doubts says, one sentence each, which parts of an identity are not used and why.
func Doubts(id Identity) []string {
	var out []string
	for _, part := range []struct{ what, value string }{{"serial number", id.Serial}, {"UUID", id.UUID}} {
		if why := Junk(part.value); why != "" {
			out = append(out, "its "+part.what+" identifies nothing: "+why)
		}
	}
	return out
}

// Contradiction says why a and b cannot be the same machine, or "". Only values
// that both have and that are no junk can contradict.
func Contradiction(a, b Identity) string {
	for _, part := range []struct{ what, a, b string }{{"serial number", a.Serial, b.Serial}, {"UUID", a.UUID, b.UUID}} {
		if x, y := Usable(part.a), Usable(part.b); x != "" && y != "" && x != y && swapped(x) != y {
			return fmt.Sprintf("one has %s %s, the other %s", part.what, part.a, part.b)
		}
	}
	return ""
}

// swapped is a UUID with its first three fields in the other byte order. SMBIOS has
// them little-endian (DMTF DSP0134, 7.2.1) but for versions before 2.6, and not
// every firmware and loader read them so: both forms are one machine.
func swapped(uuid string) string {
	fields := strings.Split(uuid, "-")
	if len(uuid) != 36 || len(fields) != 5 {
		return uuid
	}
	for i, field := range fields[:3] {
		var out string
		for j := 0; j+2 <= len(field); j += 2 {
			out = field[j:j+2] + out
		}
		fields[i] = out
	}
	return strings.Join(fields, "-")
}
