package pxebench

import (
	"slices"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/rounds"
)

// How DHCP is measured.
const (
	inFlight = 16   // requests on their way at a time
	pace     = 2000 // requests a second
)

// columns of both tables.
func dhcpColumns() []rounds.Column {
	return []rounds.Column{{Name: "offers/s", Digits: 0}, {Name: "p99 ms", Digits: 2}, {Name: "CPU µs/offer", Digits: 1}}
}

// TestBenchDHCP: DISCOVERs of machines that netboot, each from another machine, as
// a relay passes them on: first as many as the server answers, with a fixed number
// on their way at any time, and then so many a second as all of them can answer.
func TestBenchDHCP(t *testing.T) {
	y := newYard(t, nil)
	names, all := servers(y.pxed(), y.dnsmasq(), y.kea())
	g := newGenerator(t, y.client)
	for _, name := range names {
		g.await(all[name].addr)
	}
	most := &rounds.Table{
		Title: "DHCP offers, 16 DISCOVERs on their way at any time", Columns: dhcpColumns(), Names: names,
		Aims: []rounds.Aim{
			{Column: "offers/s", To: "dnsmasq", Least: 1}, {Column: "offers/s", To: "kea", Least: 1},
			{Column: "p99 ms", To: "dnsmasq", Most: 1}, {Column: "p99 ms", To: "kea", Most: 1},
			{Column: "CPU µs/offer", To: "dnsmasq", Most: 1},
		},
	}
	paced := &rounds.Table{
		Title: "DHCP offers, 2000 DISCOVERs a second", Columns: dhcpColumns(), Names: names,
		Aims: []rounds.Aim{{Column: "p99 ms", To: "dnsmasq", Most: 1}, {Column: "p99 ms", To: "kea", Most: 1}},
	}
	for round := range choose(*times, 1) {
		for _, name := range most.Order(round) {
			most.Add(name, offers(all[name], choose(20000, 300), g.together)...)
		}
		for _, name := range paced.Order(round) {
			paced.Add(name, offers(all[name], choose(4000, 100), g.paced)...)
		}
	}
	report(t, "dhcp", most, paced)
}

// offers measures one round: offers a second, p99 and processor time of each.
func offers(s *server, count int, ask func(*server, int) []time.Duration) []float64 {
	before, start := s.cpu(), time.Now()
	times := ask(s, count)
	took, used := time.Since(start), s.cpu()-before
	slices.Sort(times)
	p99 := times[len(times)*99/100]
	return []float64{float64(count) / took.Seconds(), p99.Seconds() * 1000, float64(used.Nanoseconds()) / 1000 / float64(count)}
}
