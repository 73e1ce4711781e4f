package form

import (
	"net/netip"
	"strconv"
	"strings"
)

// networking holds the forms of addresses and what is made of them.
func networking() []Form {
	return []Form{
		{Name: "mac", Pattern: `^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`, Check: checkMAC, Explain: explainMAC,
			Want: "a MAC address, such as 52:54:00:12:34:56"},
		{Name: "address", Pattern: `^(` + ipv4 + `|` + ipv6 + `)$`, Check: checkAddress, Explain: explainAddress,
			Want: "an IP address, such as 192.168.1.10"},
		{Name: "cidr", Pattern: `^(` + ipv4 + `|` + ipv6 + `)/[0-9]{1,3}$`, Check: checkNetwork, Explain: explainNetwork,
			Want: "a network with its prefix length, such as 10.42.0.0/16"},
		{Name: "hostprefix", Pattern: `^(` + ipv4 + `|` + ipv6 + `)/[0-9]{1,3}$`, Check: checkHostPrefix, Explain: explainHostPrefix,
			Want: "an address with its prefix length, such as 192.168.1.10/24"},
		{Name: "host", Pattern: `^(` + domain + `|` + ipv6 + `)$`, Check: checkHost, Explain: explainHost, Want: "a host name or an IP address"},
		{Name: "hostport", Pattern: `^(` + domain + `|\[` + ipv6 + `\]):[0-9]{1,5}$`, Check: checkHostPort,
			Want: "host:port, such as vpn.example.org:51820"},
		{Name: "interface", Pattern: `^[a-z][a-z0-9_-]{0,14}$`, Want: "an interface name of at most 15 characters, such as wg0"},
		{Name: "wireguard", Pattern: `^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$`, Want: "a WireGuard public key (32 bytes in base64)"},
		{Name: "noproxy", Pattern: `^(\.?` + domain + `|` + ipv6 + `|(` + ipv4 + `|` + ipv6 + `)/[0-9]{1,3})$`, Check: checkNoProxy,
			Explain: explainNoProxy, Want: "a host, a domain such as .example.org, or a network"},
	}
}

// explainMAC gives the canonical form of an address that is written in another one.
func explainMAC(text string) *Problem {
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.ToLower(text))
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return nil
	}
	pairs := make([]string, 6)
	for i := range pairs {
		pairs[i] = digits[2*i : 2*i+2]
	}
	return &Problem{"a MAC address in another form: " + Quote(text), "write " + strings.Join(pairs, ":")}
}

func checkMAC(text string) *Problem {
	switch first, _ := strconv.ParseUint(text[:2], 16, 8); {
	case text == "ff:ff:ff:ff:ff:ff":
		return &Problem{"the broadcast address is no interface's address", ""}
	case text == "00:00:00:00:00:00":
		return &Problem{"the zero MAC address is no interface's address", "read it from the label of the machine or from `ip link`"}
	case first&1 != 0:
		return &Problem{"a multicast MAC address: " + text, "the first pair of an interface's address is even"}
	}
	return nil
}

func checkAddress(text string) *Problem {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return &Problem{"not an IP address: " + Quote(text), leadingZeroHint(text)}
	case a.String() != text || a.Is4In6():
		return &Problem{"an IP address in another form: " + Quote(text), "write " + a.Unmap().String()}
	case a.IsUnspecified(), a.IsMulticast(), a.IsLoopback():
		return &Problem{"an address that no machine can have: " + text, ""}
	}
	return nil
}

func explainAddress(text string) *Problem {
	if p, err := netip.ParsePrefix(text); err == nil {
		return &Problem{"a prefix length where only the address belongs: " + Quote(text), "write " + p.Addr().String()}
	}
	return nil
}

func checkNetwork(text string) *Problem {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return &Problem{"not a network: " + Quote(text), leadingZeroHint(text)}
	}
	if m := p.Masked(); m != p {
		return &Problem{text + " is an address inside a network, not a network", "the network is " + m.String()}
	}
	if p.String() != text || p.Addr().Is4In6() {
		return &Problem{"a network in another form: " + Quote(text), "write " + p.String()}
	}
	return nil
}

func explainNetwork(text string) *Problem {
	if _, err := netip.ParseAddr(text); err == nil {
		return &Problem{"the prefix length is missing: " + Quote(text), "write " + text + "/24, or whatever the length is"}
	}
	return nil
}

func checkHostPrefix(text string) *Problem {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return &Problem{"not an address with prefix length: " + Quote(text), leadingZeroHint(text)}
	}
	addr, _, _ := strings.Cut(text, "/")
	if p.Bits() == 0 {
		return &Problem{"a prefix length of 0 would hold the whole internet: " + text, ""}
	}
	return checkAddress(addr)
}

func explainHostPrefix(text string) *Problem {
	if _, err := netip.ParseAddr(text); err == nil {
		return &Problem{"the prefix length is missing: " + Quote(text), "write " + text + "/24, or whatever the LAN's length is"}
	}
	return nil
}

// looksIPv4 tells texts that are meant as IPv4 addresses from host names.
func looksIPv4(text string) bool { return strings.Trim(text, "0123456789.") == "" }

func checkHost(text string) *Problem {
	switch {
	case strings.Count(text, ":") == 1:
		return explainHost(text)
	case looksIPv4(text) || strings.Contains(text, ":"):
		return checkAddress(text)
	}
	return checkDomain(text)
}

func explainHost(text string) *Problem {
	if strings.Contains(text, "://") || strings.Contains(text, ":") && !strings.Contains(text, "::") {
		return &Problem{"more than a host: " + Quote(Redact(text)), "give the host alone, without scheme and port"}
	}
	return nil
}

func checkHostPort(text string) *Problem {
	i := strings.LastIndex(text, ":")
	if port, err := strconv.Atoi(text[i+1:]); err != nil || port < 1 || port > 65535 {
		return &Problem{"not a port: " + Quote(text[i+1:]), "ports go from 1 to 65535"}
	}
	return checkHost(strings.Trim(text[:i], "[]"))
}

func checkNoProxy(text string) *Problem {
	if strings.Contains(text, "/") {
		return checkNetwork(text)
	}
	return checkHost(strings.TrimPrefix(text, "."))
}

func explainNoProxy(text string) *Problem {
	if rest, ok := strings.CutPrefix(text, "*"); ok {
		return &Problem{"a wildcard: " + Quote(text), "programs disagree about wildcards; write " + rest}
	}
	if strings.Contains(text, ",") {
		return &Problem{"a list in one text: " + Quote(text), "write one item a line, each with a dash"}
	}
	return nil
}

// leadingZeroHint explains the refusal of 010.0.0.1, which is octal to some programs.
func leadingZeroHint(text string) string {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '.' || r == '/' }) {
		if len(part) > 1 && part[0] == '0' && looksIPv4(part) {
			return "leading zeros are octal to some programs; leave them out"
		}
	}
	return ""
}
