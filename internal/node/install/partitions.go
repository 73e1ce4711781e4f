package install

import (
	"encoding/binary"
	"io"

	"github.com/slipway/slipway/internal/artifact/gpt"
)

// partitions returns start and end, in bytes, of the partitions on a disk: of its
// GPT, or else of its MBR. Logical partitions inside of an extended one count as
// part of that. A disk without a table has none.
func partitions(r io.ReaderAt, sector int) [][2]int64 {
	if sector <= 0 {
		return nil
	}
	if t, err := gpt.Read(r, sector, 1); err == nil {
		var out [][2]int64
		for _, p := range t.Partitions {
			out = append(out, [2]int64{p.Offset, p.Offset + p.Size})
		}
		return out
	}
	return oldPartitions(r, int64(sector))
}

func oldPartitions(r io.ReaderAt, sector int64) [][2]int64 {
	mbr := make([]byte, max(sector, 512))
	if _, err := r.ReadAt(mbr, 0); err != nil || mbr[510] != 0x55 || mbr[511] != 0xaa {
		return nil
	}
	var out [][2]int64
	for at := 446; at < 510; at += 16 {
		start := int64(binary.LittleEndian.Uint32(mbr[at+8:])) * sector
		size := int64(binary.LittleEndian.Uint32(mbr[at+12:])) * sector
		if size > 0 {
			out = append(out, [2]int64{start, start + size})
		}
	}
	return out
}
