package life

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

func TestBind(t *testing.T) {
	two := append(nodes(), cluster.Node{Name: "n4", Serial: "SER-N4", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:04:01"}}},
		cluster.Node{Name: "n5", Serial: "ser-n4", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:05:01"}}},
		cluster.Node{Name: "n6", Serial: "None", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:06:01"}}})
	for name, c := range map[string]struct {
		macs     []cluster.MAC
		serial   string
		complete bool
		node     string
		word     string // in the reason or refusal
	}{
		"first NIC":                {macs: []cluster.MAC{"52:54:00:00:01:01"}, node: "n1", word: "52:54:00:00:01:01"},
		"second NIC":               {macs: []cluster.MAC{"02:00:00:00:00:01", "52:54:00:00:01:02"}, node: "n1", word: "52:54:00:00:01:02"},
		"serial":                   {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "ser-n2", node: "n2", word: "serial"},
		"both":                     {macs: []cluster.MAC{"52:54:00:00:02:01"}, serial: "SER-N2", node: "n2", word: "and serial"},
		"serial not told":          {macs: []cluster.MAC{"52:54:00:00:02:01"}, node: "n2"},
		"junk serial":              {macs: []cluster.MAC{"52:54:00:00:02:01"}, serial: "Default string", node: "n2"},
		"nobody":                   {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "X9Y8", word: "X9Y8"},
		"nobody, junk":             {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "None", word: "placeholder"},
		"NICs of two nodes":        {macs: []cluster.MAC{"52:54:00:00:01:01", "52:54:00:00:03:01"}, word: "several nodes: n1, n3"},
		"serial of two nodes":      {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "SER-N4", word: "several nodes: n4, n5"},
		"MAC against serial":       {macs: []cluster.MAC{"52:54:00:00:01:01"}, serial: "SER-N2", word: "MAC address says n1"},
		"another serial":           {macs: []cluster.MAC{"52:54:00:00:02:01"}, serial: "SER-X", word: "the profile wants SER-N2"},
		"serial, no NIC of it":     {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "SER-N2", complete: true, word: "no network"},
		"the profile's own junk":   {macs: []cluster.MAC{"02:00:00:00:00:01"}, serial: "None", word: "no node"},
		"junk in profile, own MAC": {macs: []cluster.MAC{"52:54:00:00:06:01"}, serial: "A77", node: "n6"},
	} {
		node, why, err := Bind(two, Record{MACs: c.macs, Identity: machine.Identity{Serial: c.serial}, Complete: c.complete})
		said := why
		if err != nil {
			said = err.Error()
		}
		if node != c.node || !strings.Contains(said, c.word) || said == "" {
			t.Errorf("%s: %q, %q, %v", name, node, why, err)
		}
	}
}

// shelf is a fleet and its clock.
type shelf struct {
	t     *testing.T
	fleet []Record
	now   time.Time
}

func (s *shelf) see(uuid, serial string, complete bool, macs ...cluster.MAC) Record {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	got, err := Recognise(s.fleet, Sighting{MACs: macs, Identity: machine.Identity{UUID: uuid, Serial: serial}, Complete: complete}, nodes(), s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.store(got)
	return got.Record
}

func (s *shelf) store(got Recognition) {
	gone := map[machine.Key]bool{got.Record.Key: true}
	for _, k := range got.Gone {
		gone[k] = true
	}
	for _, r := range got.Changed {
		gone[r.Key] = true
	}
	next := append([]Record{got.Record}, got.Changed...)
	for _, r := range s.fleet {
		if !gone[r.Key] {
			next = append(next, r)
		}
	}
	s.fleet = next
}

func (s *shelf) get(key machine.Key) Record {
	s.t.Helper()
	for _, r := range s.fleet {
		if r.Key == key {
			return r
		}
	}
	s.t.Fatalf("no machine %s", key)
	return Record{}
}

func newShelf(t *testing.T) *shelf { return &shelf{t: t, now: start()} }

func TestOneMachineThroughAllItsNICs(t *testing.T) {
	s := newShelf(t)
	first := s.see("", "", false, "52:54:00:00:01:01") // a DHCP client that tells nothing
	second := s.see("uuid-a", "", false, "52:54:00:00:01:02")
	third := s.see("UUID-A", "A12", true, "52:54:00:00:01:02", "52:54:00:00:01:01", "02:00:00:00:00:07")
	if len(s.fleet) != 1 || first.Key != second.Key || second.Key != third.Key || third.Node != "n1" || third.Refused != "" || len(third.MACs) != 3 {
		t.Fatalf("%+v", s.fleet)
	}
}

// Two NICs that only the report shows to be one machine.
func TestMergedByReport(t *testing.T) {
	s := newShelf(t)
	s.see("uuid-a", "", false, "02:00:00:00:00:01")
	s.see("uuid-a", "", false, "02:00:00:00:00:02")
	if len(s.fleet) != 2 {
		t.Fatalf("a UUID alone makes one machine of two: %+v", s.fleet)
	}
	r := s.see("uuid-a", "", true, "02:00:00:00:00:01", "02:00:00:00:00:02")
	if len(s.fleet) != 1 || r.Refused != "" || r.State != StateInventoried {
		t.Fatalf("%+v", s.fleet)
	}
}

func TestSameMACTwice(t *testing.T) {
	s := newShelf(t)
	a := s.see("uuid-a", "", false, "52:54:00:00:03:01")
	b := s.see("uuid-b", "", false, "52:54:00:00:03:01")
	a = s.get(a.Key)
	for _, r := range []Record{a, b} {
		d := DecideBoot(r, allowed(), s.now)
		if !strings.Contains(r.Refused, "two machines have the MAC address 52:54:00:00:03:01") || d.Action != machine.ActionBootDisk || d.Reason != r.Refused {
			t.Errorf("%s: %q, %+v", r.Key, r.Refused, d)
		}
		_, _, err := Apply(r, Arm{ID: "x", Status: cluster.StatusActive, Order: order("n3", s.now.Add(time.Hour)), MaxTries: 1}, s.now)
		if err == nil {
			t.Errorf("%s can be armed", r.Key)
		}
	}
	if a.Key == b.Key {
		t.Fatal("both have one name")
	}
	s.see("", "", false, "52:54:00:00:03:01") // which one?
	if len(s.fleet) != 2 {
		t.Fatalf("%+v", s.fleet)
	}

	// The first is switched off for good; the second takes over.
	s.now = s.now.Add(LiveFor + time.Minute)
	b = s.see("uuid-b", "", false, "52:54:00:00:03:01")
	if b.Refused != "" || b.Node != "n3" {
		t.Errorf("%+v", b)
	}
	if a = s.get(a.Key); a.Node != "" || len(a.MACs) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestSameSerialTwice(t *testing.T) {
	s := newShelf(t)
	a := s.see("", "SER-N2", false, "52:54:00:00:02:01")
	b := s.see("", "SER-N2", false, "02:00:00:00:00:01")
	if a = s.get(a.Key); a.Refused == "" || b.Refused == "" {
		t.Errorf("%q, %q", a.Refused, b.Refused)
	}
	// A serial that no node is recognised by is a vendor's sloppiness and no more.
	s = newShelf(t)
	a, b = s.see("", "BATCH7", false, "52:54:00:00:01:01"), s.see("", "BATCH7", false, "52:54:00:00:03:01")
	if a = s.get(a.Key); a.Refused != "" || b.Refused != "" || a.Node != "n1" || b.Node != "n3" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A machine that is armed does not give way to another one with its address,
// however long it is silent: it may be the one that is being written.
func TestArmedDoesNotGiveWay(t *testing.T) {
	s := newShelf(t)
	a := s.see("uuid-a", "", false, "52:54:00:00:03:01")
	armed, _, err := Apply(a, Arm{ID: "x", Status: cluster.StatusActive, Order: order("n3", s.now.Add(5*time.Hour)), MaxTries: 3}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.store(Recognition{Record: armed})
	s.now = s.now.Add(time.Hour)
	b := s.see("uuid-b", "", false, "52:54:00:00:03:01")
	if !strings.Contains(b.Refused, "armed for another machine") {
		t.Errorf("%+v", b)
	}
	if d := DecideBoot(b, allowed(), s.now); d.Action != machine.ActionBootDisk {
		t.Errorf("%+v", d)
	}
}

func TestExpectedMachineIsArmedBeforeItIsSeen(t *testing.T) {
	s := newShelf(t)
	r, err := Expect(nodes()[0])
	if err != nil {
		t.Fatal(err)
	}
	r, _, err = Apply(r, Arm{ID: "x", Status: cluster.StatusActive, Order: order("n1", s.now.Add(time.Hour)), MaxTries: 3}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.store(Recognition{Record: r})
	got := s.see("uuid-a", "A12", false, "52:54:00:00:01:02")
	if got.State != StateArmed || got.Key != r.Key || DecideBoot(got, allowed(), s.now).Action != machine.ActionInstall {
		t.Fatalf("%+v", got)
	}
	if _, err := Expect(cluster.Node{Name: "n9"}); err == nil {
		t.Error("a node without an interface is expected")
	}
}

func TestProfileChanges(t *testing.T) {
	s := newShelf(t)
	a := s.see("uuid-a", "", false, "52:54:00:00:03:01")
	moved := nodes()[:2]
	got, err := Review(s.fleet, a.Key, moved, s.now)
	if err != nil || got.Record.Node != "" || got.Record.State != StateSeen || got.Record.Why == "" {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	armed, _, err := Apply(a, Arm{ID: "x", Status: cluster.StatusActive, Order: order("n3", s.now.Add(time.Hour)), MaxTries: 3}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	got, err = Review([]Record{armed}, a.Key, moved, s.now)
	if err != nil || got.Record.Node != "n3" || !strings.Contains(got.Record.Refused, "the profile has changed") {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	if got, err = Review([]Record{got.Record}, a.Key, nodes(), s.now); err != nil || got.Record.Refused != "" {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	if _, err := Review(nil, "mac:x", nodes(), s.now); err == nil {
		t.Error("reviewed nobody")
	}
}

func TestReviewSeesThatTheOtherIsGone(t *testing.T) {
	s := newShelf(t)
	s.see("uuid-a", "", false, "52:54:00:00:03:01")
	b := s.see("uuid-b", "", false, "52:54:00:00:03:01")
	if got, err := Review(s.fleet, b.Key, nodes(), s.now.Add(time.Minute)); err != nil || got.Record.Refused == "" {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	if got, err := Review(s.fleet, b.Key, nodes(), s.now.Add(time.Hour)); err != nil || got.Record.Refused != "" {
		t.Fatalf("%+v, %v", got.Record, err)
	}
}

func TestNoMAC(t *testing.T) {
	if _, err := Recognise(nil, Sighting{Identity: machine.Identity{UUID: "uuid-a"}}, nodes(), start()); err == nil {
		t.Error("recognised without an address")
	}
}

func TestSightingPutsTheBootNICFirst(t *testing.T) {
	s := SightingOf(machine.Report{NICs: []machine.NIC{{MAC: "02:00:00:00:00:01"}, {MAC: "02:00:00:00:00:02", Boot: true}, {MAC: "ff:ff:ff:ff:ff:ff"}}})
	if len(s.MACs) != 2 || s.MACs[0] != "02:00:00:00:00:02" || !s.Complete {
		t.Errorf("%+v", s)
	}
}
