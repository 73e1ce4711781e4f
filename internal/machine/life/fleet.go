package life

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// LiveFor is how long after its last request a machine counts as switched on, when
// two of them claim the same name.
const LiveFor = 10 * time.Minute

// Sighting is what a request tells about who sent it.
type Sighting struct {
	MACs     []cluster.MAC    // canonical; the one it booted from first
	Identity machine.Identity // as far as the request tells
	Complete bool             // MACs are all that the machine has: a report
}

// SightingOf reads a report's sighting. The report must have passed Check.
func SightingOf(rep machine.Report) Sighting {
	nics := slices.Clone(rep.NICs)
	slices.SortStableFunc(nics, func(a, b machine.NIC) int { return cmp.Compare(rank(a), rank(b)) })
	s := Sighting{Identity: rep.Identity, Complete: true}
	for _, n := range nics {
		if mac, err := machine.ParseMAC(n.MAC); err == nil {
			s.MACs = append(s.MACs, mac)
		}
	}
	return s
}

func rank(n machine.NIC) int {
	if n.Boot {
		return 0
	}
	return 1
}

// Recognition is the result of Recognise: the machine's record, the other records
// that changed because of it, those that turned out to be the same machine, and
// sentences for the event log.
type Recognition struct {
	Record  Record
	Changed []Record
	Gone    []machine.Key
	Notes   []string
}

// Recognise finds out which machine a sighting is of, and which node that machine
// is. Fleet holds at least the records that share a name with the sighting (Keys)
// or are bound to a node that the sighting could be; more do no harm.
//
// A machine is recognised by a MAC address; a serial number or UUID can only speak
// against it. Two live machines with the same MAC address, or that would be the
// same node, are both refused until one of them is gone; one that has not been
// heard of for LiveFor gives way, unless it is armed.
func Recognise(fleet []Record, s Sighting, nodes []cluster.Node, now time.Time) (Recognition, error) {
	if len(s.MACs) == 0 {
		return Recognition{}, machine.Refuse(machine.CodeDocument, "", "a machine without a MAC address cannot be recognised")
	}
	var out Recognition
	rec, rest := out.pick(fleet, s, nodes, now)
	before := rec.Refused
	out.see(&rec, s, now)
	out.judge(&rec, rest, nodes, before, now)
	return out, nil
}

// Review judges a known machine anew, without a request from it: others may have
// come or gone since. The key must be that of a record in the fleet.
func Review(fleet []Record, key machine.Key, nodes []cluster.Node, now time.Time) (Recognition, error) {
	var out Recognition
	i := slices.IndexFunc(fleet, func(r Record) bool { return r.Key == key })
	if i < 0 {
		return out, machine.Refuse(machine.CodeUnbound, "", "there is no machine %s", key)
	}
	var rest []Record
	for _, r := range fleet {
		if r.Key != key {
			rest = append(rest, r.clone())
		}
	}
	rec := fleet[i].clone()
	out.judge(&rec, rest, nodes, rec.Refused, now)
	return out, nil
}

// judge finds the node of the record, and whether anything speaks against it.
func (out *Recognition) judge(rec *Record, rest []Record, nodes []cluster.Node, before string, now time.Time) {
	out.bind(rec, nodes)
	out.settle(rec, rest, nodes, now)
	switch {
	case rec.Refused == before:
	case rec.Refused == "":
		out.Notes = append(out.Notes, fmt.Sprintf("machine %s is no longer refused", rec.Key))
	default:
		out.Notes = append(out.Notes, fmt.Sprintf("machine %s is refused: %s", rec.Key, rec.Refused))
	}
	out.Record = *rec
}

// pick finds the record of the sighting, or makes one; rest are all others.
func (out *Recognition) pick(fleet []Record, s Sighting, nodes []cluster.Node, now time.Time) (rec Record, rest []Record) {
	var same []Record
	macs := siblings(nodes, s.MACs)
	for _, r := range fleet {
		if sharesMAC(r.MACs, macs) && machine.Contradiction(r.Identity, s.Identity) == "" {
			same = append(same, r.clone())
		} else {
			rest = append(rest, r.clone())
		}
	}
	if len(same) == 0 {
		return out.fresh(fleet, s, now), rest
	}
	slices.SortStableFunc(same, func(a, b Record) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Key, b.Key))
	})
	rec = same[0]
	for _, r := range same[1:] {
		// A request with an address that two machines share is no proof that
		// they are one.
		if machine.Contradiction(rec.Identity, r.Identity) != "" || weight(r) >= 2 {
			rest = append(rest, r)
			continue
		}
		rec.MACs = union(rec.MACs, r.MACs)
		rec.Identity = learn(rec.Identity, r.Identity)
		out.Gone = append(out.Gone, r.Key)
		out.Notes = append(out.Notes, fmt.Sprintf("%s and %s are the same machine", rec.Key, r.Key))
	}
	return rec, rest
}

// weight puts records that something hangs on first.
func weight(r Record) int {
	switch {
	case r.Grant != nil && r.Grant.End == "":
		return 3
	case r.Installed != nil || r.State == StateFailed:
		return 2
	case r.Node != "":
		return 1
	}
	return 0
}

func (out *Recognition) fresh(fleet []Record, s Sighting, now time.Time) Record {
	r := Record{State: StateSeen, FirstSeen: now}
	taken := func(k machine.Key) bool { return slices.ContainsFunc(fleet, func(r Record) bool { return r.Key == k }) }
	for _, k := range machine.Keys(s.MACs, s.Identity) {
		if r.Key == "" && !taken(k) {
			r.Key = k
		}
	}
	if r.Key == "" { // all names are taken by machines that contradict it
		r.Key = machine.Key(fmt.Sprintf("mac:%s#%d", s.MACs[0], len(fleet)))
	}
	out.Notes = append(out.Notes, strings.Join(append([]string{fmt.Sprintf("machine %s is seen for the first time", r.Key)}, machine.Doubts(s.Identity)...), "; "))
	return r
}

func (out *Recognition) see(r *Record, s Sighting, now time.Time) {
	if s.Complete {
		r.MACs, r.Complete = slices.Clone(s.MACs), true
		r.Reported, r.Probes = now, 0
		if r.State == StateSeen {
			r.State = StateInventoried
		}
	} else {
		r.MACs = union(r.MACs, s.MACs)
	}
	r.Identity = learn(r.Identity, s.Identity)
	if r.FirstSeen.IsZero() {
		r.FirstSeen = now
	}
	r.LastSeen = now
}

// bind brings the record's node up to date with the profile.
func (out *Recognition) bind(r *Record, nodes []cluster.Node) {
	node, why, err := Bind(nodes, *r)
	r.Refused = ""
	switch {
	case err != nil:
		r.Refused = err.Error()
		if r.Node == "" {
			r.Why = r.Refused
		}
	case node == r.Node:
		r.Why = why
	case r.Grant != nil && r.Grant.End == "":
		r.Refused = fmt.Sprintf("it is armed as %s, and the profile has changed: %s", r.Node, orElse(node, why))
	default:
		out.move(r, node, why)
	}
}

func orElse(node, why string) string {
	if node != "" {
		return "it is " + node + " there"
	}
	return why
}

// move binds the record to another node, or to none.
func (out *Recognition) move(r *Record, node, why string) {
	if node != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("machine %s is %s by its %s", r.Key, node, why))
	} else {
		out.Notes = append(out.Notes, fmt.Sprintf("machine %s is no longer %s: %s", r.Key, r.Node, why))
	}
	r.Node, r.Why = node, why
	switch {
	case r.halfWritten(): // the disk does not get better by being called something else
	case node != "":
		r.rest()
	case r.Complete:
		r.State = StateInventoried
	default:
		r.State = StateSeen
	}
}

func learn(have, more machine.Identity) machine.Identity {
	return machine.Identity{
		Vendor: prefer(more.Vendor, have.Vendor), Product: prefer(more.Product, have.Product),
		Serial: prefer(more.Serial, have.Serial), UUID: prefer(more.UUID, have.UUID),
		BoardSerial: prefer(more.BoardSerial, have.BoardSerial),
	}
}

// prefer takes what identifies over what does not, and the newer of equals.
func prefer(newer, older string) string {
	if newer == "" || machine.Junk(newer) != "" && older != "" && machine.Junk(older) == "" {
		return older
	}
	return newer
}

// siblings are the addresses, and all others of the nodes that they belong to: the
// profile says that these are in one machine. Firmware tries one after the other.
func siblings(nodes []cluster.Node, macs []cluster.MAC) []cluster.MAC {
	out := slices.Clone(macs)
	for _, n := range nodesByMAC(nodes, macs) {
		for _, i := range n.Interfaces {
			out = union(out, []cluster.MAC{i.MAC})
		}
	}
	return out
}

func sharesMAC(a, b []cluster.MAC) bool {
	return slices.ContainsFunc(a, func(m cluster.MAC) bool { return slices.Contains(b, m) })
}

func union(a, b []cluster.MAC) []cluster.MAC {
	out := slices.Clone(a)
	for _, m := range b {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
