package wol

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

func TestPacket(t *testing.T) {
	p, err := Packet("52:54:00:12:34:56")
	if err != nil || len(p) != 6+16*6 {
		t.Fatalf("%d bytes, %v", len(p), err)
	}
	hw := []byte{0x52, 0x54, 0, 0x12, 0x34, 0x56}
	if !bytes.Equal(p[:6], bytes.Repeat([]byte{0xff}, 6)) || !bytes.Equal(p[6:], bytes.Repeat(hw, 16)) {
		t.Errorf("% x", p)
	}
	for _, bad := range []string{"", "n1", "52:54:00:12:34", "02:00:5e:10:00:00:00:01"} {
		if _, err := Packet(cluster.MAC(bad)); err == nil {
			t.Errorf("%q was taken for an address", bad)
		}
	}
}

func TestLastAddress(t *testing.T) {
	for network, want := range map[string]string{
		"10.0.2.15/24": "10.0.2.255", "192.168.20.200/25": "192.168.20.255", "172.16.5.9/12": "172.31.255.255", "10.1.2.3/30": "10.1.2.3",
	} {
		if got := last(netip.MustParsePrefix(network)); got.String() != want {
			t.Errorf("%s: %s, want %s", network, got, want)
		}
	}
}

// The network of lo is 127.0.0.0/8, so that the packet to its broadcast address
// can be caught there.
func TestWakeOnTheWire(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.255.255.255:9")
	if err != nil {
		t.Logf("port 9 cannot be listened on here: %v", err)
		return
	}
	defer conn.Close()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := Wake(ctx, "lo", "52:54:00:12:34:56"); err != nil {
		t.Fatal(err)
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1500)
	n, _, err := conn.ReadFrom(buf)
	want, _ := Packet("52:54:00:12:34:56")
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Errorf("% x, %v", buf[:n], err)
	}
}

func TestWakeNamesTheInterface(t *testing.T) {
	if err := Wake(t.Context(), "nonesuch0", "52:54:00:12:34:56"); err == nil {
		t.Error("an interface that does not exist was used")
	}
}
