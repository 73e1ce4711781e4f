// Package diskselect decides which disks of a machine an install uses: exactly one
// for the system, named by what it is and not by where it is plugged in, and the
// data disks of the order. For every other disk it gives the reasons why not. It
// looks at an inventory and touches nothing.
package diskselect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// Order is what is wanted, and what the image can do.
type Order struct {
	System    cluster.Selector
	Data      []machine.DataOrder
	Overwrite []string // serials or WWNs of disks whose foreign data may be destroyed
	Need      int64    // bytes the system disk must have at least: the image and room for state
	Sectors   []int    // logical sector sizes the image can be written to, bytes
	Strict    bool     // a data disk to be kept must be there and hold data
}

// OrderOf is the order of a ticket, for an image that needs so many bytes and can
// be written to disks with these logical sectors.
func OrderOf(t machine.Ticket, need int64, sectors ...int) Order {
	return Order{System: t.System, Data: t.Data, Overwrite: t.Overwrite, Need: need, Sectors: sectors}
}

// Choice is what an install does with the disks of a machine.
type Choice struct {
	System  machine.Disk
	Data    []DataChoice
	Refused []Refusal // the disks that are left alone
}

// DataChoice is what is done with one data disk.
type DataChoice struct {
	Name   string
	Disk   machine.Disk // zero when absent
	Action Action
	Note   string // what the operator should know; may be empty
}

// Action is what is done with a data disk.
type Action string

// The actions; those of machine.DataResult.
const (
	Keep   Action = "kept"   // not a byte of it is written
	Wipe   Action = "wiped"  // it is made anew
	Absent Action = "absent" // there is no such disk
)

// Refusal says why a disk is not used, one sentence without a period for each reason.
type Refusal struct {
	Disk    machine.Disk
	Reasons []string
}

// String is the refusal on one line.
func (r Refusal) String() string { return Describe(r.Disk) + ": " + strings.Join(r.Reasons, "; ") }

// Error is a choice that could not be made.
type Error struct {
	Reason  string // what is missing, one sentence
	Refused []Refusal
}

// Error is the reason and that of every disk, a line each.
func (e *Error) Error() string {
	return strings.Join(append([]string{e.Reason}, e.Reasons()...), "\n")
}

// Reasons are the refusals of the disks, one sentence each.
func (e *Error) Reasons() []string {
	var out []string
	for _, r := range e.Refused {
		out = append(out, r.String())
	}
	return out
}

// Select chooses the disks. The result does not depend on the order of the
// inventory nor on the names that the kernel gave the disks at this boot. Every
// error is an *Error.
func Select(disks []machine.Disk, o Order) (Choice, error) {
	disks = sorted(disks)
	s := selection{disks: disks, order: o}
	system, err := s.system()
	if err != nil {
		return Choice{}, err
	}
	data, err := s.data(system)
	if err != nil {
		return Choice{}, err
	}
	return Choice{System: system, Data: data, Refused: s.others(system, data)}, nil
}

// sorted orders disks by what they are.
func sorted(disks []machine.Disk) []machine.Disk {
	out := slices.Clone(disks)
	slices.SortStableFunc(out, func(a, b machine.Disk) int {
		return cmp.Or(cmp.Compare(a.Serial, b.Serial), cmp.Compare(a.WWN, b.WWN), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Describe names a disk for people.
func Describe(d machine.Disk) string {
	var parts []string
	for _, p := range []string{d.Model, prefixed("serial ", d.Serial), prefixed("WWN ", d.WWN), Bytes(d.Size)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return cmp.Or(d.Name, "a disk") + " (" + strings.Join(parts, ", ") + ")"
}

func prefixed(word, value string) string {
	if value = strings.TrimSpace(value); value == "" {
		return ""
	}
	return word + value
}

// Bytes writes a number of bytes as disks are sold: "512.1 GB".
func Bytes(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}} {
		if float64(n) >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
