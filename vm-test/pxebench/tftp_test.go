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
	"github.com/slipway/slipway/vm-test/rounds"
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
	{"TFTP, blocks of 1468, windows of 4", 1468, 4, 1},
	{"TFTP, blocks of 1468, windows of 4, 8 clients", 1468, 4, 8},
}

// tries is how often a file is loaded in a round. The fastest counts: client and
// server wait for each other after every block, and depending on which processors
// they happen to be on, that takes once or twice the time.
const tries = 3

// TestBenchTFTP: how fast one file comes. A server that does not know windowsize
// says so by leaving it out; it is then measured without.
func TestBenchTFTP(t *testing.T) {
	size := choose(8<<20, 1<<20)
	y := newYard(t, map[string]int{loader: size})
	names, all := servers(y.pxed(), y.tftpd(), y.dnsmasq(), y.library())
	var tables []*rounds.Table
	for _, w := range ways {
		table := &rounds.Table{Title: w.name + ", best of 3 in a round", Columns: []rounds.Column{{Name: "MB/s", Digits: 1}, {Name: "CPU ms/MB", Digits: 2}}, Names: names}
		for _, name := range names[1:] {
			if name != libraryName { // no program that anybody uses
				table.Aims = append(table.Aims, rounds.Aim{Column: "MB/s", To: name, Least: 1})
			}
		}
		tables = append(tables, table)
	}
	for round := range choose(*times, 1) {
		for i, w := range ways {
			for _, name := range tables[i].Order(round) {
				values, window := load(t, y.client, all[name], w, size)
				tables[i].Add(name, values...)
				if window != w.window {
					tables[i].Note(name, fmt.Sprintf("windowsize %d", window))
				}
			}
		}
	}
	report(t, "tftp", tables...)
}

// load measures one round: MB a second and processor time of each, and the window
// that was agreed.
func load(t *testing.T, client *netns.Host, s *server, w way, size int) (best []float64, window int) {
	mb := float64(size*w.clients) / 1e6
	for range choose(tries, 1) {
		before, start := s.cpu(), time.Now()
		window = together(t, client, s.addr, w, size)
		took, used := time.Since(start), s.cpu()-before
		cost := used.Seconds() * 1000 / mb
		if s.name == "tftpd-hpa" { // which works in children that it does not wait for
			cost = rounds.Unknown()
		}
		if rate := mb / took.Seconds(); best == nil || rate > best[0] {
			best = []float64{rate, cost}
		}
	}
	return best, window
}

func together(t *testing.T, h *netns.Host, to netip.Addr, w way, size int) int {
	var running sync.WaitGroup
	windows := make([]int, w.clients)
	for i := range w.clients {
		running.Go(func() { windows[i] = fetch(t, h, to, w, size) })
	}
	running.Wait()
	return windows[0]
}

// fetch reads the file once and returns the window that was agreed. The request is
// repeated until the server is there.
func fetch(t *testing.T, h *netns.Host, to netip.Addr, w way, size int) int {
	conn := h.ListenUDP(t, peer.Addr().String()+":0")
	defer conn.Close()
	request := fmt.Sprintf("\x00\x01%s\x00octet\x00blksize\x00%d\x00", loader, w.block)
	if w.window > 1 {
		request += fmt.Sprintf("windowsize\x00%d\x00", w.window)
	}
	buf := make([]byte, 65536)
	for limit := time.Now().Add(20 * time.Second); ; {
		conn.WriteToUDPAddrPort([]byte(request), netip.AddrPortFrom(to, 69))
		conn.SetReadDeadline(time.Now().Add(time.Second))
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err == nil && buf[1] == 6 {
			window := 1
			if strings.Contains(string(buf[:n]), "windowsize") {
				window = w.window
			}
			receive(t, conn, from, buf, w.block, window, size)
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
