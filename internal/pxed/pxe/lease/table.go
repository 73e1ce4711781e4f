package lease

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// Table is the leases of one network. It is not safe for concurrent use.
type Table struct {
	cfg    Config
	first  uint32
	size   uint32
	byMAC  map[cluster.MAC]*Lease
	byAddr map[netip.Addr]*Lease
	static map[cluster.MAC]Reservation
	barred map[netip.Addr]bool // never given from the pool: taken or reserved
}

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
		byMAC: map[cluster.MAC]*Lease{}, byAddr: map[netip.Addr]*Lease{},
		static: map[cluster.MAC]Reservation{}, barred: map[netip.Addr]bool{},
	}
	for _, a := range c.Taken {
		t.barred[a] = true
	}
	for _, r := range c.Reserved {
		t.static[r.MAC], t.barred[r.Addr] = r, true
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
	for _, l := range t.byAddr {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}

// Owner is the machine that has an address.
func (t *Table) Owner(a netip.Addr) (cluster.MAC, bool) {
	l := t.byAddr[a]
	if l == nil || l.State == Declined {
		return "", false
	}
	return l.MAC, true
}

// mayHave reports whether the address is one that the table could give to the machine.
func (t *Table) mayHave(mac cluster.MAC, a netip.Addr) bool {
	if r, ok := t.static[mac]; ok {
		return r.Addr == a
	}
	return a.Is4() && number(a)-t.first < t.size && !t.barred[a]
}

// free reports whether nobody but the machine has a claim to the address.
func (t *Table) free(now time.Time, mac cluster.MAC, a netip.Addr) bool {
	l := t.byAddr[a]
	return l == nil || l.MAC == mac && l.State != Declined || !now.Before(l.Expires)
}

// choose finds an address for a machine: the reserved one, the one it has or had,
// the one it asks for, or the first free one counting from a place that its MAC
// decides, so that a machine comes back to the same address even when the leases
// were lost.
func (t *Table) choose(now time.Time, mac cluster.MAC, wanted netip.Addr) (netip.Addr, bool) {
	if r, ok := t.static[mac]; ok {
		return r.Addr, t.free(now, mac, r.Addr)
	}
	if l := t.byMAC[mac]; l != nil && t.mayHave(mac, l.Addr) && t.free(now, mac, l.Addr) {
		return l.Addr, true
	}
	if wanted.IsValid() && t.mayHave(mac, wanted) && t.free(now, mac, wanted) {
		return wanted, true
	}
	h := fnv.New32a()
	h.Write([]byte(mac))
	start := h.Sum32() % t.size
	for i := range t.size {
		a := address(t.first + (start+i)%t.size)
		if !t.barred[a] && t.free(now, mac, a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// put records a lease and takes away what contradicts it: another address of the
// same machine, an expired lease of the same address.
func (t *Table) put(l Lease) {
	t.drop(t.byAddr[l.Addr])
	if l.MAC != "" {
		t.drop(t.byMAC[l.MAC])
		t.byMAC[l.MAC] = &l
	}
	t.byAddr[l.Addr] = &l
}

func (t *Table) drop(l *Lease) {
	if l == nil {
		return
	}
	delete(t.byAddr, l.Addr)
	if t.byMAC[l.MAC] == l {
		delete(t.byMAC, l.MAC)
	}
}
