package diskselect

import (
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// Running finds the data disks of a node that is running, whatever policy its
// install had: nothing is wiped there. Each must be there, and be blank or hold data
// of Slipway. DataChoice.Blank tells which have to be made. Every error is an *Error.
func Running(disks []machine.Disk, orders []machine.DataOrder) ([]DataChoice, error) {
	s := selection{disks: sorted(disks)}
	for _, o := range orders {
		o.Policy = cluster.PolicyKeep
		s.order.Data = append(s.order.Data, o)
	}
	var system machine.Disk
	if i := slices.IndexFunc(s.disks, func(d machine.Disk) bool { return d.Boot }); i >= 0 {
		system = s.disks[i]
	}
	choices, err := s.data(system)
	if err != nil {
		return nil, err
	}
	var failed Error
	for _, c := range choices {
		if c.Action == Absent {
			failed.Reason = join(failed.Reason, "data disk "+c.Name+": "+strings.TrimSuffix(c.Note, ": nothing to keep"))
			failed.Refused = append(failed.Refused, s.strangers(c.Name)...)
		}
	}
	if failed.Reason != "" {
		return nil, &failed
	}
	return choices, nil
}

// strangers says of every disk why it is not the wanted one.
func (s *selection) strangers(name string) []Refusal {
	var out []Refusal
	for _, o := range s.order.Data {
		for _, d := range s.disks {
			if o.Name == name {
				out = append(out, Refusal{d, append(unfit(d), mismatch(d, o.Disk)...)})
			}
		}
	}
	return out
}

// Blank reports whether there is nothing on the disk of a choice.
func (c DataChoice) Blank() bool { return holds(c.Disk) == blank }
