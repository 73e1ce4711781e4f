package diskselect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

type selection struct {
	disks []machine.Disk
	order Order
}

// system finds the one disk that the system goes to. Disks that can never be it
// do not count; of those that can, exactly one must match, and nothing may speak
// against that one. That a second match is busy or full does not make the first
// the right one.
func (s *selection) system() (machine.Disk, error) {
	if s.order.System.IsZero() {
		return machine.Disk{}, &Error{Reason: "the order does not say which disk the system goes to"}
	}
	found := s.matching(s.order.System)
	if len(found) != 1 {
		return machine.Disk{}, &Error{Reason: wantOne("system", found, s.order.System), Refused: s.refusals(s.order.System, found)}
	}
	reasons := append(doubtful(found[0], s.order.System, s.disks), s.unwritable(found[0])...)
	if o := s.order; found[0].Size < o.Need {
		reasons = append(reasons, fmt.Sprintf("it has %s, the image and the state need %s", Bytes(found[0].Size), Bytes(o.Need)))
	} else if !slices.Contains(o.Sectors, found[0].Sector) {
		reasons = append(reasons, fmt.Sprintf("its logical sectors have %d bytes, the image is for %s", found[0].Sector, numbers(o.Sectors)))
	}
	switch what := holds(found[0]); {
	case hasData(found[0]):
		reasons = append(reasons, "it holds a data partition of Slipway ("+contents(found[0])+"): the system never goes over data, not even when the order names the disk")
	case what == foreign && !s.confirmed(found[0]):
		reasons = append(reasons, foreignReason(found[0]))
	}
	if len(reasons) > 0 {
		refused := append([]Refusal{{Disk: found[0], Reasons: reasons}}, s.refusals(s.order.System, found)...)
		return machine.Disk{}, &Error{Reason: "the system disk is found, but must not be written", Refused: refused}
	}
	return found[0], nil
}

// matching are the disks that can be a disk of the node and are as wanted.
func (s *selection) matching(want cluster.Selector) []machine.Disk {
	var out []machine.Disk
	for _, d := range s.disks {
		if len(unfit(d)) == 0 && len(mismatch(d, want)) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// unwritable says why a disk cannot be written now.
func (s *selection) unwritable(d machine.Disk) []string {
	var out []string
	if d.ReadOnly {
		out = append(out, "it is read-only")
	}
	if d.Busy != "" {
		out = append(out, "it is in use by "+d.Busy)
	}
	return out
}

// confirmed reports whether the order names the disk as one whose foreign data may
// go. A name that two disks share, or that is junk, confirms nothing.
func (s *selection) confirmed(d machine.Disk) bool {
	for _, name := range s.order.Overwrite {
		if machine.Junk(name) != "" {
			continue
		}
		named := func(d machine.Disk) bool {
			return strings.TrimSpace(d.Serial) == strings.TrimSpace(name) || d.WWN != "" && worldName(d.WWN) == worldName(name)
		}
		others := slices.ContainsFunc(s.disks, func(o machine.Disk) bool { return !same(o, d) && named(o) })
		if named(d) && !others {
			return true
		}
	}
	return false
}

func foreignReason(d machine.Disk) string {
	name := d.ID()
	if name == "" {
		return "it holds foreign data (" + contents(d) + ") and has neither serial number nor WWN to confirm it by: empty it by hand"
	}
	return fmt.Sprintf("it holds foreign data (%s): --overwrite %s when arming, or when writing the stick, allows to destroy it", contents(d), name)
}

func wantOne(what string, found []machine.Disk, want cluster.Selector) string {
	if len(found) == 0 {
		return fmt.Sprintf("no disk is the %s disk (wanted: %s)", what, wanted(want))
	}
	var names []string
	for _, d := range found {
		names = append(names, Describe(d))
	}
	return fmt.Sprintf("%d disks could be the %s disk (wanted: %s), it must be one: %s", len(found), what, wanted(want), strings.Join(names, ", "))
}

func wanted(want cluster.Selector) string {
	var parts []string
	for _, p := range []string{prefixed("serial ", want.Serial), prefixed("WWN ", want.WWN), prefixed("model ", want.Model)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if want.MinSize > 0 {
		parts = append(parts, "at least "+want.MinSize.String())
	}
	if want.MaxSize > 0 {
		parts = append(parts, "at most "+want.MaxSize.String())
	}
	return strings.Join(parts, ", ")
}

func numbers(n []int) string {
	var out []string
	for _, v := range n {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, " or ")
}

// refusals say of every disk why it is not the wanted one; found are those that
// match and are one too many, or refused for other reasons already.
func (s *selection) refusals(want cluster.Selector, found []machine.Disk) []Refusal {
	var out []Refusal
	for _, d := range s.disks {
		matches := slices.ContainsFunc(found, func(f machine.Disk) bool { return same(f, d) })
		switch reasons := append(unfit(d), mismatch(d, want)...); {
		case len(reasons) > 0:
			out = append(out, Refusal{Disk: d, Reasons: reasons})
		case matches && len(found) > 1:
			out = append(out, Refusal{Disk: d, Reasons: []string{"it matches, but so do others: name the disk by its serial number"}})
		}
	}
	return out
}
