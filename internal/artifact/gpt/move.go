package gpt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// HeadSize is how many bytes at the start of a disk Move needs: MBR, header and
// entries.
func HeadSize(sector int) int { return 2*sector + arrayLen(sector) }

// TailSize is how many bytes at the end of a disk the backup takes.
func TailSize(sector int) int { return sector + arrayLen(sector) }

func arrayLen(sector int) int { return (arraySize + sector - 1) / sector * sector }

// Move fits the table of an image onto a disk of size bytes. head is the start of
// the image, HeadSize bytes at least; the results are what belongs to the start of
// the disk, as long as head, and to its end, TailSize bytes. Partitions stay where
// they are, and the space behind them becomes usable.
func Move(head []byte, sector int, size int64) (start, tail []byte, err error) {
	if len(head) < HeadSize(sector) {
		return nil, nil, fmt.Errorf("moving the partition table: %d bytes of it, want %d", len(head), HeadSize(sector))
	}
	t, err := Read(bytes.NewReader(head), sector, 1)
	if err != nil {
		return nil, nil, fmt.Errorf("moving the partition table: %w", err)
	}
	sectors := size / int64(sector)
	last := sectors - 2 - int64(arrayLen(sector)/sector)
	for _, p := range t.Partitions {
		if p.Offset+p.Size > (last+1)*int64(sector) {
			return nil, nil, fmt.Errorf("moving the partition table: partition %d ends after the last usable byte of a disk of %d bytes", p.Number, size)
		}
	}
	start = slices.Clone(head)
	binary.LittleEndian.PutUint32(start[mbrEntry+12:], protected(sectors))
	copy(start[sector:], t.place(1, sectors-1, last, 2))
	tail = make([]byte, TailSize(sector))
	copy(tail, t.array)
	copy(tail[arrayLen(sector):], t.place(sectors-1, 1, last, last+1))
	return start, tail, nil
}

// place is the header as it must be in sector my.
func (t Table) place(my, alternate, last, entries int64) []byte {
	h, le := slices.Clone(t.header), binary.LittleEndian
	le.PutUint64(h[24:], uint64(my))
	le.PutUint64(h[32:], uint64(alternate))
	le.PutUint64(h[48:], uint64(last))
	le.PutUint64(h[72:], uint64(entries))
	le.PutUint32(h[16:], 0)
	le.PutUint32(h[16:], crc32.ChecksumIEEE(h[:headerSize]))
	return h
}
