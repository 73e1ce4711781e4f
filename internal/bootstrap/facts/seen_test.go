package facts

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// A slow answer widens what is possible, and never makes a difference out of nothing.
func TestClocks(t *testing.T) {
	at := func(least, most time.Duration) Seen { return Seen{Behind: least, Ahead: most} }
	for _, c := range []struct {
		a, b       Seen
		off, apart time.Duration
	}{
		{at(-time.Second, time.Second), at(-time.Second, time.Second), 0, 0},
		{at(3*time.Second, 4*time.Second), at(0, time.Second), 3 * time.Second, 2 * time.Second},
		{at(-5*time.Second, -4*time.Second), at(-4*time.Second, -3*time.Second), -4 * time.Second, 0},
		{at(-5*time.Second, -4*time.Second), at(3*time.Second, 4*time.Second), -4 * time.Second, -7 * time.Second},
		{at(-10*time.Second, 10*time.Second), at(5*time.Second, 6*time.Second), 0, 0},
	} {
		if off, apart := c.a.Off(), c.a.Apart(c.b); off != c.off || apart != c.apart {
			t.Errorf("%v and %v: off %s, apart %s", c.a, c.b, off, apart)
		}
	}
}

func TestFound(t *testing.T) {
	c := cluster.Cluster{
		Network: cluster.Network{LAN: netip.MustParsePrefix("10.0.2.0/24"), APIVIP: netip.MustParseAddr("10.0.2.10")},
		Nodes: []cluster.Node{
			{Name: "n1", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:00:01", DHCP: true}}},
			{Name: "n2", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:00:02", DHCP: true}}},
		},
	}
	has := func(mac string, addresses ...string) Facts {
		return Facts{Interfaces: []Interface{{MAC: "52:54:00:00:00:09", Addresses: []string{"10.0.2.99/24"}}, {MAC: mac, Addresses: addresses}}}
	}
	found := Found(c, []Seen{
		{Node: "n1", Facts: has("52:54:00:00:00:01", "fe80::1/64", "192.0.2.1/24", "10.0.2.10/32", "10.0.2.15/24")},
		{Node: "n2", Err: errors.New("no"), Facts: has("52:54:00:00:00:02", "10.0.2.16/24")},
	})
	if len(found) != 1 || found["n1"] != netip.MustParseAddr("10.0.2.15") {
		t.Errorf("%v", found)
	}
}
