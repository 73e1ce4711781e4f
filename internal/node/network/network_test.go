package network

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// interfaces makes a /sys/class/net.
func interfaces(t *testing.T, macs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, mac := range macs {
		if err := os.MkdirAll(filepath.Join(dir, name, "device"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "address"), []byte(mac+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "lo"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestInterfaces(t *testing.T) {
	all, err := list(interfaces(t, map[string]string{"eth1": "52:54:00:00:00:02", "eth0": "52:54:00:00:00:01"}))
	if err != nil || !slices.Equal(all, []nic{{"eth0", "52:54:00:00:00:01"}, {"eth1", "52:54:00:00:00:02"}}) {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := wanted(all, "52:54:00:00:00:02"); len(got) != 1 || got[0].Name != "eth1" {
		t.Errorf("%+v", got)
	}
	if got := wanted(all, ""); len(got) != 2 {
		t.Errorf("any: %+v", got)
	}
	if got := wanted(all, "52:54:00:00:00:03"); len(got) != 0 {
		t.Errorf("none: %+v", got)
	}
	if err := missing(all, "52:54:00:00:00:03"); !strings.Contains(err.Error(), "only eth0 52:54:00:00:00:01, eth1") {
		t.Error(err)
	}
	if err := missing(nil, ""); !strings.Contains(err.Error(), "no network interface") {
		t.Error(err)
	}
}

// The kernel's struct rtentry has this size on 64-bit machines.
func TestRoute(t *testing.T) {
	if n := unsafe.Sizeof(rtentry{}); n != 120 {
		t.Errorf("struct rtentry has %d bytes", n)
	}
	if got := sockaddr(net.IPv4(10, 0, 2, 2)); got != [16]byte{2, 0, 0, 0, 10, 0, 2, 2} {
		t.Errorf("% x", got)
	}
}

// The identifier is the one that iPXE sends and that the seed makes networkd send.
func TestDiscover(t *testing.T) {
	mac := net.HardwareAddr{0x52, 0x54, 0, 0x12, 0x34, 0x56}
	modifiers, err := asOthersDo(mac)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dhcpv4.NewDiscovery(mac, modifiers...)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Options.Get(dhcpv4.OptionClientIdentifier); !slices.Equal(got, []byte{1, 0x52, 0x54, 0, 0x12, 0x34, 0x56}) {
		t.Errorf("% x", got)
	}
	// A class that begins with PXEClient would make a proxyDHCP server answer.
	if got := p.ClassIdentifier(); got != "slipway-install" {
		t.Error(got)
	}
	if _, err := asOthersDo(net.HardwareAddr{1, 2, 3}); err == nil {
		t.Error("an address of three bytes was taken")
	}
}

func TestUnderstood(t *testing.T) {
	mac := net.HardwareAddr{0x52, 0x54, 0, 0x12, 0x34, 0x56}
	answer := func(modifiers ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		ask, err := dhcpv4.NewDiscovery(mac)
		if err != nil {
			t.Fatal(err)
		}
		ack, err := dhcpv4.NewReplyFromRequest(ask, modifiers...)
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	address := dhcpv4.WithYourIP(net.IPv4(10, 0, 2, 15))
	mask := dhcpv4.WithNetmask(net.CIDRMask(24, 32))
	up, err := understood(nic{"eth0", mac.String()}, answer(address, mask, dhcpv4.WithLeaseTime(120)))
	if err != nil || up.Address.String() != "10.0.2.15/24" || up.Lease != 2*time.Minute {
		t.Errorf("%+v, %v", up, err)
	}
	if up, err := understood(nic{}, answer(address, mask)); err != nil || up.Lease != defaultLease {
		t.Errorf("without a lease time: %+v, %v", up, err)
	}
	for name, ack := range map[string]*dhcpv4.DHCPv4{"no mask": answer(address), "no address": answer(mask)} {
		if _, err := understood(nic{}, ack); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
