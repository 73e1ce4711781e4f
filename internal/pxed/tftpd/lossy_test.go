package tftpd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// peer is a client made by hand.
type peer struct {
	conn *net.UDPConn
	to   *net.UDPAddr
}

func dial(t *testing.T) *peer {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: own.Addr().AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{conn, &net.UDPAddr{IP: own.Addr().AsSlice(), Port: Port}}
}

func (p *peer) write(t *testing.T, s string) {
	t.Helper()
	if _, err := p.conn.WriteTo([]byte(s), p.to); err != nil {
		t.Fatal(err)
	}
}

// read returns the next packet and answers its sender from then on.
func (p *peer) read(t *testing.T) string {
	t.Helper()
	buf := make([]byte, 65536)
	p.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, from, err := p.conn.ReadFromUDP(buf)
	if err != nil {
		t.Fatal(err)
	}
	p.to = from
	return string(buf[:n])
}

func rrq(name string, options ...string) string {
	s := "\x00\x01" + name + "\x00octet\x00"
	for _, o := range options {
		s += o + "\x00"
	}
	return s
}

func ack(block uint16) string {
	return string(binary.BigEndian.AppendUint16([]byte{0, opAck}, block))
}

// A client as RFC 7440 describes it, on a network that loses, doubles and delays:
// it acknowledges the last block of a window, or, when one is missing, the last
// before the gap.
func TestWindowsOnABadNetwork(t *testing.T) {
	for _, window := range []int{1, 2, 4, 16} {
		for _, loss := range []float64{0, 0.01, 0.1} {
			t.Run(fmt.Sprintf("window %d, loss %v", window, loss), func(t *testing.T) {
				b := serve(t, Config{})
				k := dial(t)
				size := 284672
				if loss > 0 {
					size = 30 * window * 512 // a lost packet costs up to a second
				}
				got := k.fetch(t, fmt.Sprintf("boot/%d", size), 512, window, loss, rand.New(rand.NewPCG(uint64(window), 3)))
				if !bytes.Equal(got, noise(size)) {
					t.Errorf("%d bytes of something else", len(got))
				}
				if end := b.end(t); end.Outcome != Sent || end.Window != window || loss == 0 && end.Resent > 0 {
					t.Errorf("%+v", end)
				}
			})
		}
	}
}

func (p *peer) fetch(t *testing.T, name string, block, window int, loss float64, r *rand.Rand) []byte {
	lost := func() bool { return r.Float64() < loss }
	p.write(t, rrq(name, "blksize", strconv.Itoa(block), "windowsize", strconv.Itoa(window), "timeout", "1"))
	oack := p.read(t)
	if want := "\x00\x06blksize\x00" + strconv.Itoa(block) + "\x00windowsize\x00" + strconv.Itoa(window) + "\x00timeout\x001\x00"; oack != want {
		t.Fatalf("got %q", oack)
	}
	p.write(t, ack(0))
	var out []byte
	next, inWindow, complained := uint16(1), 0, false
	buf := make([]byte, 65536)
	for {
		p.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := p.conn.Read(buf)
		switch {
		case err != nil: // silence: say again what we have
			p.write(t, ack(next-1))
			inWindow = 0
			continue
		case lost():
			continue
		case n < dataHeader || buf[1] != opData:
			continue
		}
		if binary.BigEndian.Uint16(buf[2:]) != next {
			if !complained && !lost() {
				p.write(t, ack(next-1))
			}
			complained, inWindow = true, 0
			continue
		}
		complained = false
		out = append(out, buf[dataHeader:n]...)
		last := n < dataHeader+block
		if inWindow++; last || inWindow == window {
			inWindow = 0
			if last || !lost() {
				p.write(t, ack(next))
			}
		}
		next++
		if last {
			return out
		}
	}
}
