// Package signature recognises what is on a disk: partition tables, file systems,
// and members of RAID, LVM, ZFS and their like. It only reads. It is stricter than
// a mount: what could be somebody's data counts, even if no kernel could use it.
package signature

import (
	"io"
	"strings"

	"github.com/slipway/slipway/internal/machine"
)

// maxFound bounds what is reported of one disk.
const maxFound = 200

// Unrecognised is the type of content that is none of the known ones.
const Unrecognised = "unrecognised data"

// Partition is the type of the signature that says that a partition is there.
const Partition = "partition"

// Probe returns what is on a disk of size bytes with the given logical sector
// size. Nothing found means that the disk is blank. What cannot be read counts as
// not there.
func Probe(r io.ReaderAt, size int64, sector int) []machine.Signature {
	d := device{r: r, size: size}
	table := d.table(int64(sector))
	out := table.signatures()
	if len(table.parts) == 0 || table.kind == "" {
		out = append(out, d.content(0)...)
	} else {
		// A table does not keep ZFS or RAID from lying over the whole disk.
		out = append(out, d.members(0)...)
	}
	for _, p := range table.parts {
		part := device{r: io.NewSectionReader(r, p.start, p.size), size: p.size}
		out = append(out, part.content(p.number)...)
	}
	if len(out) == 0 && !d.blank() {
		out = append(out, machine.Signature{Type: Unrecognised})
	}
	return out[:min(len(out), maxFound)]
}

// device is a disk or a partition.
type device struct {
	r    io.ReaderAt
	size int64
}

// at returns n bytes at an offset; they are zeros when they cannot be read.
func (d device) at(offset, n int64) []byte {
	b := make([]byte, n)
	if offset < 0 || offset+n > d.size {
		return b
	}
	if _, err := d.r.ReadAt(b, offset); err != nil {
		clear(b)
	}
	return b
}

// blank reports whether both ends hold one byte only: zeros, or the ones of an
// erased flash.
func (d device) blank() bool {
	const look = 1 << 20
	n := min(look, d.size)
	return uniform(d.at(0, n)) && uniform(d.at(d.size-n, n))
}

func uniform(b []byte) bool {
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

// content is what lies directly on a device.
func (d device) content(number int) []machine.Signature {
	out := d.members(number)
	for _, f := range filesystems {
		if s, ok := f.find(d); ok {
			s.Partition = number
			out = append(out, s)
		}
	}
	return out
}

// members are signatures of what spans several devices, or lies under others.
func (d device) members(number int) []machine.Signature {
	var out []machine.Signature
	for _, find := range []func(device) (machine.Signature, bool){raidMember, lvmMember, zfsMember, firmwareRAID} {
		if s, ok := find(d); ok {
			s.Partition = number
			out = append(out, s)
		}
	}
	return out
}

// text is a label: up to the first NUL, without spaces around and without what a
// console or a document cannot show.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	return strings.TrimSpace(s)
}
