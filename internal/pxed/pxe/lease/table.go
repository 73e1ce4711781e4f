package lease

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// Table is the leases of one network. It is not safe for concurrent use.
//
// What it holds for each address has no pointers, so that the garbage collector has
// nothing to look at in a table of many thousands.
type Table struct {
	cfg    Config
	first  uint32
	size   uint32
	byAddr map[uint32]entry
	byMAC  map[uint64]uint32
	hosts  map[uint32]string
	static map[cluster.MAC]Reservation
	barred map[uint32]bool // never given from the pool: taken or reserved
	full   int64           // until then nothing comes free, as far as was seen; 0 when that is not known
}

// entry is what is known about one address.
type entry struct {
	mac     uint64 // 0 for nobody
	expires int64  // nanoseconds since 1970
	state   byte   // index in states
}

var states = []State{Offered, Bound, Declined}

// New is a table with the leases that were kept from the last run. Leases that do
// not fit the configuration any more are left out, and of several for one machine
// all but the last: a machine that moves to another address gives up the old one.
func New(c Config, kept []Lease) (*Table, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Time = cmp.Or(c.Time, defaultTime)
	t := &Table{
		cfg: c, first: number(c.First), size: number(c.Last) - number(c.First) + 1,
		byAddr: map[uint32]entry{}, byMAC: map[uint64]uint32{}, hosts: map[uint32]string{},
		static: map[cluster.MAC]Reservation{}, barred: map[uint32]bool{},
	}
	for _, a := range c.Taken {
		t.barred[number(a)] = true
	}
	for _, r := range c.Reserved {
		t.static[r.MAC], t.barred[number(r.Addr)] = r, true
	}
	kept = slices.SortedFunc(slices.Values(kept), func(a, b Lease) int { return a.Expires.Compare(b.Expires) })
	for _, l := range kept {
		if t.mayHave(l.MAC, l.Addr) {
			t.put(l)
		}
	}
	return t, nil
}

// Leases lists what is known, by address.
func (t *Table) Leases() []Lease {
	out := make([]Lease, 0, len(t.byAddr))
	for n := range t.byAddr {
		out = append(out, t.at(n))
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}

// Owner is the machine that has an address.
func (t *Table) Owner(a netip.Addr) (cluster.MAC, bool) {
	if !a.Is4() {
		return "", false
	}
	e := t.byAddr[number(a)]
	return name(e.mac), e.mac != 0
}

// at is the lease of an address that is in the table.
func (t *Table) at(n uint32) Lease {
	e := t.byAddr[n]
	return Lease{Addr: address(n), MAC: name(e.mac), Host: t.hosts[n], State: states[e.state], Expires: time.Unix(0, e.expires).UTC()}
}

// of is the lease of a machine.
func (t *Table) of(mac cluster.MAC) (Lease, bool) {
	n, ok := t.byMAC[key(mac)]
	if !ok {
		return Lease{}, false
	}
	return t.at(n), true
}

// mayHave reports whether the address is one that the table could give to the machine.
func (t *Table) mayHave(mac cluster.MAC, a netip.Addr) bool {
	if r, ok := t.static[mac]; ok {
		return r.Addr == a
	}
	return a.Is4() && number(a)-t.first < t.size && !t.barred[number(a)]
}

// free reports whether nobody but the machine has a claim to the address; if
// somebody has, until when.
func (t *Table) free(now time.Time, mac cluster.MAC, n uint32) (bool, int64) {
	e, known := t.byAddr[n]
	return !known || e.mac == key(mac) && states[e.state] != Declined || now.UnixNano() >= e.expires, e.expires
}

func (t *Table) isFree(now time.Time, mac cluster.MAC, a netip.Addr) bool {
	ok, _ := t.free(now, mac, number(a))
	return ok
}

// choose finds an address for a machine: the reserved one, the one it has or had,
// the one it asks for, or the first free one counting from a place that its MAC
// decides, so that a machine comes back to the same address even when the leases
// were lost.
func (t *Table) choose(now time.Time, mac cluster.MAC, wanted netip.Addr) (netip.Addr, bool) {
	if r, ok := t.static[mac]; ok {
		return r.Addr, t.isFree(now, mac, r.Addr)
	}
	if l, ok := t.of(mac); ok && t.mayHave(mac, l.Addr) && t.isFree(now, mac, l.Addr) {
		return l.Addr, true
	}
	if wanted.IsValid() && t.mayHave(mac, wanted) && t.isFree(now, mac, wanted) {
		return wanted, true
	}
	return t.search(now, mac)
}

// search walks through the pool once; when it is full, not again before the first
// of its leases ends.
func (t *Table) search(now time.Time, mac cluster.MAC) (netip.Addr, bool) {
	if now.UnixNano() < t.full {
		return netip.Addr{}, false
	}
	h := fnv.New32a()
	h.Write([]byte(mac))
	start, soonest := h.Sum32()%t.size, int64(math.MaxInt64)
	for i := range t.size {
		n := t.first + (start+i)%t.size
		if t.barred[n] {
			continue
		}
		ok, until := t.free(now, mac, n)
		if ok {
			return address(n), true
		}
		soonest = min(soonest, until)
	}
	t.full = soonest
	return netip.Addr{}, false
}

// put records a lease and takes away what contradicts it: another address of the
// same machine, an expired lease of the same address.
func (t *Table) put(l Lease) {
	n, mac := number(l.Addr), key(l.MAC)
	t.drop(n)
	if mac != 0 {
		if old, ok := t.byMAC[mac]; ok {
			t.drop(old)
		}
		t.byMAC[mac] = n
	}
	t.byAddr[n] = entry{mac: mac, expires: l.Expires.UnixNano(), state: byte(slices.Index(states, l.State))}
	if l.Host != "" {
		t.hosts[n] = l.Host
	}
	t.full = 0
}

func (t *Table) drop(n uint32) {
	if e, ok := t.byAddr[n]; ok {
		delete(t.byAddr, n)
		delete(t.hosts, n)
		if t.byMAC[e.mac] == n {
			delete(t.byMAC, e.mac)
		}
		t.full = 0
	}
}

// key is a MAC as a number; 0 for none.
func key(mac cluster.MAC) uint64 {
	var out uint64
	for _, c := range []byte(mac) {
		switch {
		case c >= '0' && c <= '9':
			out = out<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			out = out<<4 | uint64(c-'a'+10)
		}
	}
	return out
}

// name is the MAC of a key.
func name(key uint64) cluster.MAC {
	if key == 0 {
		return ""
	}
	const digits = "0123456789abcdef"
	b := binary.BigEndian.AppendUint64(nil, key)[2:]
	out := make([]byte, 0, 17)
	for i, v := range b {
		if i > 0 {
			out = append(out, ':')
		}
		out = append(out, digits[v>>4], digits[v&15])
	}
	return cluster.MAC(out)
}
