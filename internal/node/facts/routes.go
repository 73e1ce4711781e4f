package facts

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"net/netip"
	"strings"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
)

// routes reads the kernel's main table: addresses are 32-bit numbers in the byte
// order of the processor, which is little-endian on what k3s runs on.
func (s Source) routes() []told.Route {
	out := []told.Route{}
	for line := range strings.Lines(string(s.file("/proc/net/route"))) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		to, ok := routeAddress(f[1])
		mask, okMask := routeAddress(f[7])
		if !ok || !okMask {
			continue // the heading
		}
		m := mask.As4()
		r := told.Route{Interface: f[0], Destination: netip.PrefixFrom(to, bits.OnesCount32(binary.BigEndian.Uint32(m[:])))}
		if via, ok := routeAddress(f[2]); ok && !via.IsUnspecified() {
			r.Gateway = via
		}
		out = append(out, r)
	}
	return out
}

func routeAddress(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 4 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{raw[3], raw[2], raw[1], raw[0]}), true
}
