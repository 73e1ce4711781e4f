package listen

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// port opens a port on the loopback with a batch of so many datagrams.
func port(t *testing.T, n int) (*Batch, *net.UDPConn, netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	b, err := NewBatch(conn, n, 512)
	if err != nil {
		t.Fatal(err)
	}
	return b, conn, netip.MustParseAddrPort(conn.LocalAddr().String())
}

// More datagrams than fit into a batch arrive in order, with their sender and
// without anything of those before them.
func TestBatchCarriesDatagrams(t *testing.T) {
	from, _, sender := port(t, 3)
	to, _, at := port(t, 4)
	var out []Packet
	for i := range 10 {
		out = append(out, Packet{at, fmt.Appendf(nil, "%0*d", 12-i, i)})
	}
	if n, err := from.Write(out); n != 10 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for seen := 0; seen < 10; {
		in, err := to.Read()
		if err != nil || len(in) > 4 {
			t.Fatalf("%d, %v", len(in), err)
		}
		for _, p := range in {
			if want := out[seen].Data; string(p.Data) != string(want) || p.Peer != sender {
				t.Errorf("got %q from %s, want %q from %s", p.Data, p.Peer, want, sender)
			}
			seen++
		}
	}
}

// An empty datagram is no sign that the port was shut.
func TestBatchReadsEmptyDatagrams(t *testing.T) {
	from, _, sender := port(t, 1)
	to, _, at := port(t, 2)
	if _, err := from.Write([]Packet{{Peer: at}}); err != nil {
		t.Fatal(err)
	}
	if in, err := to.Read(); err != nil || len(in) != 1 || len(in[0].Data) != 0 || in[0].Peer != sender {
		t.Errorf("%v, %v", in, err)
	}
}

// Who is told how many were sent can go on behind the one that could not be.
func TestBatchTellsWhichCouldNotBeSent(t *testing.T) {
	from, _, _ := port(t, 2)
	to, _, at := port(t, 4)
	nowhere := netip.MustParseAddrPort("198.51.100.1:9") // there is no route out of this network
	packets := []Packet{{at, []byte("a")}, {at, []byte("b")}, {at, []byte("c")}, {nowhere, []byte("d")}, {at, []byte("e")}}
	n, err := from.Write(packets)
	if n != 3 || err == nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := from.Write(packets[n+1:]); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	var got string
	for len(got) < 4 {
		in, err := to.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in {
			got += string(p.Data)
		}
	}
	if got != "abce" {
		t.Errorf("got %q", got)
	}
}

// A deadline ends a read, and nothing else: what is being answered can be finished.
func TestBatchStops(t *testing.T) {
	b, conn, at := port(t, 2)
	ended := make(chan error, 1)
	go func() {
		_, err := b.Read()
		ended <- err
	}()
	conn.SetReadDeadline(time.Now())
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the reader goes on")
	}
	if n, err := b.Write([]Packet{{at, []byte("last words")}}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	conn.SetReadDeadline(time.Time{})
	if in, err := b.Read(); err != nil || string(in[0].Data) != "last words" {
		t.Errorf("%v, %v", in, err)
	}
	conn.Close()
	if _, err := b.Read(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed port: %v", err)
	}
}
