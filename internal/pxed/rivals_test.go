package pxed

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pxed/dhcpd/rival"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// logged is a log that tests read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// On a network that has a DHCP server, pxed does not become a second one unless that
// was said; then it warns.
func TestSecondDHCPServer(t *testing.T) {
	dnsmasq, err := exec.LookPath("dnsmasq")
	if err != nil {
		t.Skip("dnsmasq is not installed")
	}
	bridge := netns.Bridge(t, "10.0.2.2/24")
	router := netns.NewHost(t)
	netns.Plug(t, bridge, router, "52:54:00:67:00:02", "10.0.2.3/24")
	c := router.Command(context.Background(), dnsmasq, "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file", "--no-ping",
		"--dhcp-range=10.0.2.50,10.0.2.60,1h", "--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"), "--log-facility=-")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	patient, enough := context.WithTimeout(t.Context(), time.Minute)
	defer enough()
	if _, up, err := rival.Find(patient, bridge); err != nil || !up { // until it is up
		t.Fatalf("%v, %v", up, err)
	}
	o := options(t)
	o.Interfaces, o.Mode = []string{bridge, bridge}, pxe.ModeDHCP // it is served once
	o.Started = func([]netip.AddrPort) { t.Error("it serves") }
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	err = Serve(ctx, o)
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "another DHCP server answers on "+bridge+": 10.0.2.3") || !strings.Contains(diag.HintOf(err), "--mode proxy") {
		t.Fatalf("%v", err)
	}

	log := &logged{}
	o.Force, o.Log = true, slog.New(slog.NewTextHandler(log, nil))
	_, end := serve(t, o)
	for until := time.Now().Add(30 * time.Second); !log.has("another DHCP server answers on this network"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no warning in %s", log.b.String())
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}

	o.Force, o.Mode = false, pxe.ModeProxy
	if _, end := serve(t, o); end() != nil {
		t.Error("a proxy minds the other server")
	}
}
