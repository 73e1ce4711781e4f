package signature

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/slipway/slipway/internal/machine"
)

// table is a partition table.
type table struct {
	kind  string // "gpt", "dos" or ""
	id    string
	parts []part
}

type part struct {
	number      int
	start, size int64 // bytes
	name, id    string
}

// signatures are the table and, of a GPT, its partitions with their names.
func (t table) signatures() []machine.Signature {
	if t.kind == "" {
		return nil
	}
	out := []machine.Signature{{Type: t.kind, UUID: t.id}}
	for _, p := range t.parts {
		if t.kind == "gpt" {
			out = append(out, machine.Signature{Partition: p.number, Type: Partition, Label: p.name, UUID: p.id})
		}
	}
	return out
}

// table finds a GPT, its backup when the first copy is gone, or an MBR. Disks that
// were moved between enclosures can have a table for another sector size.
func (d device) table(sector int64) table {
	for _, size := range []int64{sector, 512, 4096} {
		if size <= 0 {
			continue
		}
		for _, lba := range []int64{1, d.size/size - 1} {
			if t, ok := d.gpt(size, lba); ok {
				return t
			}
		}
	}
	return d.dos(max(sector, 512))
}

// gpt reads the copy of a GPT whose header lies in a sector (UEFI specification
// 5.3). Checksums do not matter: a table that is damaged is somebody's, too.
func (d device) gpt(sector, lba int64) (table, bool) {
	h, le := d.at(lba*sector, 512), binary.LittleEndian
	if string(h[:8]) != "EFI PART" {
		return table{}, false
	}
	t := table{kind: "gpt", id: guid(h[56:72])}
	first, n, size := int64(le.Uint64(h[72:])), int64(le.Uint32(h[80:])), int64(le.Uint32(h[84:]))
	if first <= 0 || first > d.size/sector || n > 1024 || size < 128 || size > 4096 {
		return t, true
	}
	entries := d.at(first*sector, n*size)
	for i := range n {
		e := entries[i*size:][:128]
		if bytes.Count(e[:16], []byte{0}) == 16 {
			continue
		}
		from, to := int64(le.Uint64(e[32:])), int64(le.Uint64(e[40:]))
		p := part{number: int(i) + 1, id: guid(e[16:32]), name: wide(e[56:128])}
		if from > 0 && to >= from && to < d.size/sector {
			p.start, p.size = from*sector, (to-from+1)*sector
		}
		t.parts = append(t.parts, p)
	}
	return t, true
}

// dos reads an MBR and the chain of logical partitions.
func (d device) dos(sector int64) table {
	b := d.at(0, 512)
	if !isMBR(b) {
		return table{}
	}
	t := table{kind: "dos", id: fmt.Sprintf("%08x", binary.LittleEndian.Uint32(b[440:]))}
	for i := range 4 {
		kind, start, size := entry(b, i)
		switch {
		case size == 0 || kind == 0:
		case kind == 0x05 || kind == 0x0f || kind == 0x85:
			t.parts = append(t.parts, d.logical(start, sector)...)
		default:
			t.parts = append(t.parts, d.bounded(i+1, start*sector, size*sector))
		}
	}
	return t
}

// isMBR tells an MBR from the boot sector of a FAT or NTFS, which ends in the same
// bytes: boot flags are 0 or 0x80, and something is there.
func isMBR(b []byte) bool {
	if b[510] != 0x55 || b[511] != 0xaa {
		return false
	}
	used := false
	for i := range 4 {
		if flag := b[446+16*i]; flag != 0 && flag != 0x80 {
			return false
		}
		kind, _, size := entry(b, i)
		used = used || kind != 0 && size != 0
	}
	return used
}

func entry(b []byte, i int) (kind byte, start, size int64) {
	e := b[446+16*i:]
	return e[4], int64(binary.LittleEndian.Uint32(e[8:])), int64(binary.LittleEndian.Uint32(e[12:]))
}

// logical walks the chain of an extended partition; a loop ends it.
func (d device) logical(extended, sector int64) []part {
	var out []part
	for at, n := extended, 5; n < 64; n++ {
		b := d.at(at*sector, 512)
		if b[510] != 0x55 || b[511] != 0xaa {
			break
		}
		if kind, start, size := entry(b, 0); kind != 0 && size != 0 {
			out = append(out, d.bounded(n, (at+start)*sector, size*sector))
		}
		_, next, size := entry(b, 1)
		if next == 0 || size == 0 {
			break
		}
		at = extended + next
	}
	return out
}

// bounded is a partition, without its extent when that is not on the device.
func (d device) bounded(number int, start, size int64) part {
	p := part{number: number}
	if start >= 0 && size > 0 && start+size <= d.size {
		p.start, p.size = start, size
	}
	return p
}

// guid is the text of a GUID whose first three fields are little-endian.
func guid(b []byte) string {
	le := binary.LittleEndian
	return strings.ToUpper(fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16]))
}

// uuid is the text of a UUID as it stands.
func uuid(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func wide(b []byte) string {
	var u []uint16
	for i := 0; i+1 < len(b); i += 2 {
		c := binary.LittleEndian.Uint16(b[i:])
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return text([]byte(string(utf16.Decode(u))))
}
