package pxe

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// FuzzDecide: whatever arrives, nothing breaks; a proxy answers nobody who does not
// want to boot from the network, hands out no address, and every reply can be read.
func FuzzDecide(f *testing.F) {
	names, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(names) == 0 {
		f.Fatal(err, len(names))
	}
	for _, n := range names {
		b := raw(f, strings.TrimSuffix(filepath.Base(n), ".hex"))
		f.Add(b, false, uint8(0))
		f.Add(b, true, uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, pxePort bool, what uint8) {
		p, err := dhcpv4.FromBytes(b)
		if err != nil {
			return
		}
		q := request(p)
		q.Verdict = Verdict(what % 3)
		if pxePort {
			q.Port, q.From = PortPXE, netip.MustParseAddrPort("10.77.0.9:4011")
		}
		proxy := Decide(q, config(ModeProxy))
		if r := proxy.Reply; r != nil {
			if !q.Client.IsPXE() || r.YourIPAddr != nil || r.Options[optLeaseTime] != nil || q.Verdict == Ignore {
				t.Errorf("a proxy answered %s with %s", p.Summary(), r.Summary())
			}
			readable(t, proxy)
		}
		q.Grant = Grant{Kind: GrantKind(what / 3 % 4), Addr: netip.MustParseAddr("10.77.0.100"), Time: time.Hour, Why: "fuzzed"}
		first := Decide(q, config(ModeDHCP))
		readable(t, first)
		q.Into = &dhcpv4.DHCPv4{BootFileName: "old", ServerHostName: "old", HopCount: 3, YourIPAddr: []byte{1, 2, 3, 4}, Options: dhcpv4.Options{99: []byte("old")}}
		if again := Decide(q, config(ModeDHCP)); first.Reply != nil && !bytes.Equal(Append(nil, again.Reply), Append(nil, first.Reply)) {
			t.Errorf("in memory that was used before: %s", again.Reply.Summary())
		}
	})
}

func readable(t *testing.T, d Decision) {
	if d.Why == "" {
		t.Error("no reason given")
	}
	if d.Reply == nil {
		return
	}
	if _, err := dhcpv4.FromBytes(d.Reply.ToBytes()); err != nil {
		t.Errorf("unreadable reply: %v", err)
	}
	if !d.To.Addr.IsValid() {
		t.Errorf("no destination for %s", d.Reply.Summary())
	}
}

func TestFixturesNameTheirOrigin(t *testing.T) {
	names, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if text, err := os.ReadFile(n); err != nil || !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not say where it comes from (%v)", n, err)
		}
		if base := strings.TrimSuffix(filepath.Base(n), ".hex"); base != "dnsmasq-offer" {
			if _, ok := golden[base]; !ok {
				t.Errorf("nothing is expected of %s", n)
			}
		}
	}
}
