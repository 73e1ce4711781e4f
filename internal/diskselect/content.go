package diskselect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
)

// holding is what kind of content a disk has.
type holding int

const (
	blank   holding = iota
	ours            // an earlier install of Slipway's system, and nothing else
	ourData         // a data disk of Slipway, and nothing else
	foreign         // anything else
)

// holds tells what is on a disk.
//
// An earlier system is recognised by its partitions: a slot, and nothing but names
// that Slipway gives. Such a disk holds no data that the cluster needs
// (nodes are cattle), so a ticket alone may overwrite it. A partition for data
// makes the disk one of data, whatever else is on it.
func holds(d machine.Disk) holding {
	if len(d.Content) == 0 {
		return blank
	}
	names, other := map[string]bool{}, false
	for _, label := range partitions(d) {
		switch {
		case systemNames[label], isData(label):
			names[label] = true
		default:
			other = true
		}
	}
	data := hasData(d)
	slots := names[disklayout.NameSlotA] || names[disklayout.NameSlotB]
	switch {
	case other:
		return foreign
	case data && len(names) == 1:
		return ourData
	case slots && !data:
		return ours
	}
	return foreign
}

// partitions gives each partition, and the disk itself where it holds more than a
// partition table, its name in lower case: that of the GPT or of its file system,
// whichever is one of ours.
func partitions(d machine.Disk) map[int]string {
	out := map[int]string{}
	for _, s := range d.Content {
		if s.Partition == 0 && s.Type == "gpt" {
			continue
		}
		label := strings.ToLower(s.Label)
		if s.Partition == 0 && !isData(label) {
			label = "the whole disk" // a file system of that name is no partition
		}
		if known := out[s.Partition]; !systemNames[known] && !isData(known) {
			out[s.Partition] = label
		}
	}
	return out
}

// systemNames are the partitions of a system disk, in lower case.
var systemNames = map[string]bool{
	disklayout.NameESP: true, disklayout.NameSlotA: true, disklayout.NameSlotB: true, disklayout.NameState: true, "cidata": true,
}

func isData(label string) bool { return strings.EqualFold(label, disklayout.NameData) }

// hasData reports whether a partition for data is on the disk, beside whatever else.
func hasData(d machine.Disk) bool {
	return slices.ContainsFunc(d.Content, func(s machine.Signature) bool { return isData(s.Label) })
}

// contents names what is on a disk, for people: what is not ours first, because
// only so many fit.
func contents(d machine.Disk) string {
	labels := partitions(d)
	strange := func(s machine.Signature) int {
		if label := labels[s.Partition]; s.Type == "gpt" || systemNames[label] {
			return 1
		}
		return 0
	}
	all := slices.Clone(d.Content)
	slices.SortStableFunc(all, func(a, b machine.Signature) int { return strange(a) - strange(b) })
	var out []string
	for _, s := range all {
		text := s.Type
		if s.Label != "" {
			text += fmt.Sprintf(" %q", s.Label)
		}
		if s.Partition > 0 {
			text += fmt.Sprintf(" on partition %d", s.Partition)
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) > 6 {
		out = append(out[:6], fmt.Sprintf("and %d more", len(out)-6))
	}
	return strings.Join(out, ", ")
}
