package rival

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// dnsmasq serves a bridge from a host of its own, with its check whether an address is
// free, which takes three seconds.
func dnsmasq(t *testing.T, bridge, dhcpRange string) {
	t.Helper()
	program, err := exec.LookPath("dnsmasq")
	if err != nil {
		t.Skip("dnsmasq is not installed")
	}
	h := netns.NewHost(t)
	netns.Plug(t, bridge, h, "52:54:00:67:00:02", "10.67.0.2/24")
	c := h.Command(context.Background(), program, "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file",
		"--dhcp-range="+dhcpRange, "--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"), "--log-facility=-")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
}

func TestDHCPServerIsFound(t *testing.T) {
	bridge := netns.Bridge(t, "10.67.0.1/24")
	dnsmasq(t, bridge, "10.67.0.50,10.67.0.60,1h")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // it may take long to start
	defer stop()
	s, ok, err := Find(ctx, bridge)
	if err != nil || !ok || s.Addr != netip.MustParseAddr("10.67.0.2") || !netip.MustParsePrefix("10.67.0.0/24").Contains(s.Offer) {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
}

// Nobody, and a proxyDHCP server, which gives no addresses.
func TestNobodyIsFound(t *testing.T) {
	bridge := netns.Bridge(t, "10.67.0.1/24")
	dnsmasq(t, bridge, "10.67.0.0,proxy")
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	if s, ok, err := Find(ctx, bridge); err != nil || ok {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	if _, _, err := Find(t.Context(), "nonesuch0"); err == nil {
		t.Error("looked on an interface that there is not")
	}
}
