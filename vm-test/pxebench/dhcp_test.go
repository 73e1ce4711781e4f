package pxebench

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// TestBenchDHCP: DISCOVERs of machines that netboot, each from another machine, as
// a relay passes them on; a fixed number is on its way at any time.
func TestBenchDHCP(t *testing.T) {
	count, rounds := 500, 1
	if *full {
		count, rounds = 20000, 3
	}
	b := newBench(t, 1)
	conn := b.client.ListenUDP(t, peer.Addr().String()+":67")
	var results []result
	for _, server := range []string{"pxed", "dnsmasq", "kea"} {
		stop := b.dhcpServers()[server](t)
		offer(t, conn, 200, 1, 0) // until it answers, and warm
		best := result{What: "DHCP offers", Server: server, Unit: "/s"}
		for round := range rounds {
			start := time.Now()
			times := offer(t, conn, count, inFlight, round+1)
			slices.Sort(times)
			if rate := float64(count) / time.Since(start).Seconds(); rate > best.Value {
				best.Value, best.P99 = rate, times[len(times)*99/100].Seconds()*1000
			}
		}
		best.CPU = float64(stop().Microseconds()) / float64(200+count*rounds)
		results = append(results, best)
	}
	report(t, "dhcp", results)
}

const inFlight = 16

// offer asks for count machines and returns how long each offer took. A lost
// request is sent again after a second, as firmware does, and counts as that long.
func offer(t *testing.T, conn *net.UDPConn, count, parallel, series int) []time.Duration {
	t.Helper()
	to := netip.AddrPortFrom(own.Addr(), 67)
	packets, sent := make([][]byte, count), make([]time.Time, count)
	for i := range packets {
		packets[i] = discovery(series, i)
	}
	times := make([]time.Duration, 0, count)
	slots := make(chan struct{}, parallel)
	var mu sync.Mutex
	send := func(i int) {
		mu.Lock()
		sent[i] = time.Now()
		mu.Unlock()
		conn.WriteToUDPAddrPort(packets[i], to) // while the server is starting nobody may be there
	}
	go func() {
		for i := range packets {
			slots <- struct{}{}
			send(i)
		}
	}()
	done := make([]bool, count)
	buf := make([]byte, 2048)
	for limit := time.Now().Add(2 * time.Minute); len(times) < count; {
		conn.SetReadDeadline(time.Now().Add(time.Second))
		n, err := conn.Read(buf)
		now := time.Now()
		if err != nil || n < 8 {
			if now.After(limit) {
				t.Fatalf("%d of %d offers came", len(times), count)
			}
			for i := range packets {
				mu.Lock()
				lost := !sent[i].IsZero() && !done[i]
				mu.Unlock()
				if lost {
					conn.WriteToUDPAddrPort(packets[i], to)
				}
			}
			continue
		}
		i := int(binary.BigEndian.Uint32(buf[4:]) & 0xffffff)
		if i >= count || done[i] || int(buf[4]) != series {
			continue
		}
		done[i] = true
		mu.Lock()
		times = append(times, now.Sub(sent[i]))
		mu.Unlock()
		<-slots
	}
	return times
}

// discovery is the DISCOVER of one machine; its transaction says which.
func discovery(series, i int) []byte {
	mac := net.HardwareAddr{0x52, 0x54, byte(series), byte(i >> 16), byte(i >> 8), byte(i)}
	p := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, HopCount: 1, ClientHWAddr: mac, GatewayIPAddr: peer.Addr().AsSlice(),
		TransactionID: dhcpv4.TransactionID{byte(series), byte(i >> 16), byte(i >> 8), byte(i)}, Options: dhcpv4.Options{},
	}
	p.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeDiscover))
	p.UpdateOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000"))
	p.UpdateOption(dhcpv4.OptClientArch(iana.EFI_X86_64))
	p.UpdateOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionBootfileName, dhcpv4.OptionClassIdentifier))
	return p.ToBytes()
}
