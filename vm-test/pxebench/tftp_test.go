package pxebench

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/netns"
)

// way is how a client asks for the file.
type way struct {
	name          string
	block, window int
	clients       int
}

// ways: option ROMs ask in plain blocks, iPXE with larger ones, OVMF in windows of 4.
var ways = []way{
	{"TFTP, blocks of 512", 512, 1, 1},
	{"TFTP, blocks of 1468", 1468, 1, 1},
	{"TFTP, 1468, windows of 4", 1468, 4, 1},
	{"TFTP, 1468, windows of 4, 8 clients", 1468, 4, 8},
}

// TestBenchTFTP: how fast one file comes. A server that does not know windowsize
// says so by leaving it out; it is then measured without.
func TestBenchTFTP(t *testing.T) {
	size, rounds := 1<<20, 1
	if *full {
		size, rounds = 16<<20, 3
	}
	b := newBench(t, size)
	var results []result
	for _, w := range ways {
		for _, server := range []string{"pxed", "tftpd-hpa", "dnsmasq", "pin/tftp library"} {
			stop := b.tftpServers()[server](t)
			r := result{What: w.name, Server: server, Unit: "MB/s"}
			fetch(t, b.client, w, size)
			for range rounds {
				start := time.Now()
				window := together(t, b.client, w, size)
				if rate := float64(size*w.clients) / 1e6 / time.Since(start).Seconds(); rate > r.Value {
					r.Value = rate
				}
				if window != w.window {
					r.Note = fmt.Sprintf("windowsize %d", window)
				}
			}
			if spent := stop(); server != "tftpd-hpa" { // which works in children that it does not wait for
				r.CPU = float64(spent.Microseconds()) / (float64(size*(1+w.clients*rounds)) / 1e6)
			}
			results = append(results, r)
		}
	}
	report(t, "tftp", results)
}

func together(t *testing.T, h *netns.Host, w way, size int) int {
	var running sync.WaitGroup
	windows := make([]int, w.clients)
	for i := range w.clients {
		running.Go(func() { windows[i] = fetch(t, h, w, size) })
	}
	running.Wait()
	return windows[0]
}

// fetch reads the file once and returns the window that was agreed. The request is
// repeated until the server is there.
func fetch(t *testing.T, h *netns.Host, w way, size int) int {
	conn := h.ListenUDP(t, peer.Addr().String()+":0")
	defer conn.Close()
	request := fmt.Sprintf("\x00\x01boot\x00octet\x00blksize\x00%d\x00", w.block)
	if w.window > 1 {
		request += fmt.Sprintf("windowsize\x00%d\x00", w.window)
	}
	buf := make([]byte, 65536)
	var server netip.AddrPort
	for limit := time.Now().Add(20 * time.Second); ; {
		conn.WriteToUDPAddrPort([]byte(request), netip.AddrPortFrom(own.Addr(), 69))
		conn.SetReadDeadline(time.Now().Add(time.Second))
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err == nil && buf[1] == 6 {
			server = from
			window := 1
			if strings.Contains(string(buf[:n]), "windowsize") {
				window = w.window
			}
			receive(t, conn, server, buf, w.block, window, size)
			return window
		}
		if time.Now().After(limit) {
			t.Errorf("no OACK: %v %q", err, buf[:max(n, 0)])
			return 0
		}
	}
}

func receive(t *testing.T, conn *net.UDPConn, to netip.AddrPort, buf []byte, block, window, size int) {
	answer := []byte{0, 4, 0, 0}
	conn.WriteToUDPAddrPort(answer, to)
	next, got, inWindow := uint16(1), 0, 0
	conn.SetReadDeadline(time.Now().Add(60 * time.Second))
	for {
		n, _, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil || n < 4 || buf[1] != 3 {
			t.Errorf("after %d of %d bytes: %v %q", got, size, err, buf[:n])
			return
		}
		if binary.BigEndian.Uint16(buf[2:]) != next {
			continue
		}
		got += n - 4
		last := n < 4+block
		if inWindow++; inWindow == window || last {
			inWindow = 0
			binary.BigEndian.PutUint16(answer[2:], next)
			conn.WriteToUDPAddrPort(answer, to)
		}
		if last {
			break
		}
		next++
	}
	if got != size {
		t.Errorf("%d bytes came, not %d", got, size)
	}
}
