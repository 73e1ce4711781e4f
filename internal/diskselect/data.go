package diskselect

import (
	"fmt"
	"slices"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// data finds the data disks of the order. All are looked at before anything is
// decided, so that one run shows everything that is wrong.
func (s *selection) data(system machine.Disk) ([]DataChoice, error) {
	var out []DataChoice
	var failed Error
	taken := map[string]string{system.Name: "the system"}
	for _, want := range s.order.Data {
		choice, refused, reason := s.one(want, taken)
		if reason != "" {
			failed.Reason = join(failed.Reason, "data disk "+want.Name+": "+reason)
			failed.Refused = append(failed.Refused, refused...)
			continue
		}
		if choice.Action != Absent {
			taken[choice.Disk.Name] = "data disk " + want.Name
		}
		out = append(out, choice)
	}
	if failed.Reason != "" {
		return nil, &failed
	}
	return out, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func (s *selection) one(want machine.DataOrder, taken map[string]string) (DataChoice, []Refusal, string) {
	if want.Disk.IsZero() {
		return DataChoice{}, nil, "the order does not say which disk"
	}
	// A selector without serial may fit the system disk as well; that one is given.
	found := slices.DeleteFunc(s.matching(want.Disk), func(d machine.Disk) bool {
		return want.Disk.Serial == "" && want.Disk.WWN == "" && taken[d.Name] != ""
	})
	if len(found) == 0 && want.Policy == cluster.PolicyKeep && !s.order.Strict {
		note := "there is no such disk (wanted: " + wanted(want.Disk) + "): nothing to keep"
		return DataChoice{Name: want.Name, Action: Absent, Note: note}, nil, ""
	}
	if len(found) != 1 {
		return DataChoice{}, s.refusals(want.Disk, found), wantOne(want.Name, found, want.Disk)
	}
	d := found[0]
	if holder := taken[d.Name]; holder != "" {
		return DataChoice{}, nil, fmt.Sprintf("%s is %s already", Describe(d), holder)
	}
	choice, reasons := s.judge(want, d)
	reasons = append(doubtful(d, want.Disk, s.disks), reasons...)
	if len(reasons) > 0 {
		return DataChoice{}, []Refusal{{Disk: d, Reasons: reasons}}, "the disk is found, but cannot be used"
	}
	return choice, nil, ""
}

// judge says what is done with a data disk that is the right one, or why it cannot be.
func (s *selection) judge(want machine.DataOrder, d machine.Disk) (DataChoice, []string) {
	choice := DataChoice{Name: want.Name, Disk: d}
	switch what := holds(d); want.Policy {
	case cluster.PolicyKeep:
		choice.Action = Keep
		switch {
		case what == blank && s.order.Strict:
			return choice, []string{"it is blank, and its data shall be kept"}
		case what == blank:
			choice.Note = "it is blank: it is left so, the node makes it on first boot"
		case what != ourData:
			return choice, []string{"its data shall be kept, but what it holds is not Slipway's: " + contents(d)}
		}
		return choice, nil
	case cluster.PolicyWipe:
		choice.Action = Wipe
		reasons := s.unwritable(d)
		if (what == foreign || what == ours) && !s.confirmed(d) {
			reasons = append(reasons, foreignReason(d))
		}
		return choice, reasons
	}
	return choice, []string{fmt.Sprintf("%q is no policy for a data disk", want.Policy)}
}

// others are the disks that are left alone, and why.
func (s *selection) others(system machine.Disk, data []DataChoice) []Refusal {
	var out []Refusal
	for _, d := range s.disks {
		used := same(d, system) || slices.ContainsFunc(data, func(c DataChoice) bool { return c.Action != Absent && same(c.Disk, d) })
		if !used {
			out = append(out, Refusal{Disk: d, Reasons: append(unfit(d), mismatch(d, s.order.System)...)})
		}
	}
	return out
}
