package life

import (
	"fmt"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// settle decides between the record and others that claim the same names.
func (out *Recognition) settle(r *Record, others []Record, nodes []cluster.Node, now time.Time) {
	for _, other := range others {
		clash := Clash(*r, other, nodes)
		if clash == "" {
			continue
		}
		live := now.Sub(other.LastSeen) < LiveFor || other.LastSeen.After(r.LastSeen)
		armed := other.Grant != nil && other.Grant.End == ""
		switch {
		case live:
			r.Refused = refusedFor(*r, other, clash)
			other.Refused = refusedFor(other, *r, clash)
			out.Changed = append(out.Changed, other)
		case armed:
			r.Refused = fmt.Sprintf("%s is armed for another machine, %s: %s", other.Node, other.Key, clash)
		default:
			out.giveWay(*r, other)
		}
	}
}

func refusedFor(r, other Record, clash string) string {
	return fmt.Sprintf("%s; this machine is %s, the other %s", clash, r.Key, other.Key)
}

// giveWay takes the names that r has now from a machine that is no longer there.
func (out *Recognition) giveWay(r, old Record) {
	old.MACs = slices.DeleteFunc(old.MACs, func(m cluster.MAC) bool { return slices.Contains(r.MACs, m) })
	if old.Node == r.Node && r.Node != "" {
		why := "machine " + string(r.Key) + " has taken its place"
		out.move(&old, "", why)
	}
	out.Changed = append(out.Changed, old)
}

// Clash says what two different machines both claim, or "": a MAC address, a
// node, or a serial number that a node of the profile is recognised by.
func Clash(a, b Record, nodes []cluster.Node) string {
	for _, m := range a.MACs {
		if slices.Contains(b.MACs, m) {
			why := machine.Contradiction(a.Identity, b.Identity)
			if why == "" {
				why = "they cannot be told apart"
			}
			return fmt.Sprintf("two machines have the MAC address %s: %s", m, why)
		}
	}
	if a.Node != "" && a.Node == b.Node {
		return fmt.Sprintf("two machines would be %s: one by its %s, one by its %s", a.Node, a.Why, b.Why)
	}
	serial := machine.Usable(a.Identity.Serial)
	if serial == "" || serial != machine.Usable(b.Identity.Serial) || len(nodesBySerial(nodes, serial)) == 0 {
		return ""
	}
	return fmt.Sprintf("two machines have the serial number %s, which the profile recognises a node by", a.Identity.Serial)
}
