package gpt

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/slipway/slipway/internal/artifact"
)

// Check reads both copies of the table and the protective MBR of an image and
// returns, in words, where they differ from the index or from each other.
func Check(r io.ReaderAt, disk artifact.Disk) []string {
	var out []string
	sectors := disk.Size / int64(disk.SectorSize)
	out = append(out, checkMBR(r, sectors)...)
	primary, err := Read(r, disk.SectorSize, 1)
	if err != nil {
		out = append(out, "primary GPT: "+err.Error())
	} else {
		out = append(out, primary.check("primary GPT", disk, sectors-1)...)
	}
	backup, err := Read(r, disk.SectorSize, sectors-1)
	if err != nil {
		out = append(out, "backup GPT: "+err.Error())
	} else {
		out = append(out, backup.check("backup GPT", disk, 1)...)
	}
	return out
}

func (t Table) check(which string, disk artifact.Disk, other int64) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, which+": "+fmt.Sprintf(format, args...)) }
	arrayLen := (arraySize + t.sector - 1) / t.sector
	sectors := disk.Size / t.sector
	if t.Alternate != other {
		say("the other copy is in sector %d, want %d", t.Alternate, other)
	}
	if t.GUID != disk.GUID {
		say("disk GUID is %s, the index has %s", t.GUID, disk.GUID)
	}
	if want := sectors - 2 - arrayLen; t.Last != want {
		say("last usable sector is %d, want %d", t.Last, want)
	}
	if t.First < 2+arrayLen {
		say("first usable sector is %d, inside the table", t.First)
	}
	if t.My == 1 && t.Entries != 2 || t.My != 1 && t.Entries != sectors-1-arrayLen {
		say("entries start in sector %d", t.Entries)
	}
	for i, want := range disk.Partitions {
		if i >= len(t.Partitions) {
			say("partition %d (%s) is missing", want.Number, want.Name)
			continue
		}
		if have := t.Partitions[i]; have != want {
			say("partition %d is %+v, the index has %+v", have.Number, have, want)
		}
	}
	for _, p := range t.Partitions[min(len(disk.Partitions), len(t.Partitions)):] {
		say("partition %d (%s) is not in the index", p.Number, p.Name)
	}
	return out
}

// checkMBR checks the protective MBR, without which old tools take the disk for empty.
func checkMBR(r io.ReaderAt, sectors int64) []string {
	var b [512]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return []string{"protective MBR: " + err.Error()}
	}
	le, e := binary.LittleEndian, b[mbrEntry:]
	switch {
	case b[510] != 0x55 || b[511] != 0xaa:
		return []string{"protective MBR: no signature"}
	case e[4] != 0xee || le.Uint32(e[8:]) != 1:
		return []string{"protective MBR: first entry does not protect the GPT"}
	case le.Uint32(e[12:]) != protected(sectors):
		return []string{fmt.Sprintf("protective MBR: covers %d sectors, want %d", le.Uint32(e[12:]), protected(sectors))}
	}
	return nil
}

// mbrEntry is where the first partition entry of an MBR starts, in bytes.
const mbrEntry = 446

// protected is the length of the protective entry: all sectors but the first, or
// as many as 32 bits can say.
func protected(sectors int64) uint32 { return uint32(min(sectors-1, 0xffffffff)) }
