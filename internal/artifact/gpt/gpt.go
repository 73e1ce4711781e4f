// Package gpt reads the partition table of a disk image with all its checksums,
// holds it against the index, and moves it onto a disk of another size. It is the
// second opinion on a table that another library has written, so it shares no
// code with that. The rules are those of the UEFI specification, chapter 5.
package gpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/slipway/slipway/internal/artifact"
)

// Shape of the tables that everybody writes, and the only one accepted here.
const (
	headerSize = 92
	entryCount = 128
	entrySize  = 128
	arraySize  = entryCount * entrySize // bytes
)

// Table is one of the two copies of a partition table. LBAs count sectors.
type Table struct {
	My, Alternate int64 // where this header and the other one lie
	First, Last   int64 // usable sectors
	Entries       int64 // where the array of entries starts
	GUID          string
	Partitions    []artifact.Partition
	sector        int64
	array         []byte
	header        []byte
}

// Read reads the copy whose header lies in sector lba, and checks its signature,
// its checksums and that it believes to be there.
func Read(r io.ReaderAt, sector int, lba int64) (Table, error) {
	t := Table{sector: int64(sector), header: make([]byte, sector)}
	if _, err := r.ReadAt(t.header, lba*t.sector); err != nil {
		return Table{}, fmt.Errorf("reading the header: %w", err)
	}
	if err := t.parseHeader(lba); err != nil {
		return Table{}, err
	}
	t.array = make([]byte, arraySize)
	if _, err := r.ReadAt(t.array, t.Entries*t.sector); err != nil {
		return Table{}, fmt.Errorf("reading the entries: %w", err)
	}
	if crc32.ChecksumIEEE(t.array) != binary.LittleEndian.Uint32(t.header[88:]) {
		return Table{}, errors.New("checksum of the entries is wrong")
	}
	for i := range entryCount {
		if p, used := t.entry(i); used {
			t.Partitions = append(t.Partitions, p)
		}
	}
	return t, nil
}

func (t *Table) parseHeader(lba int64) error {
	h, le := t.header, binary.LittleEndian
	if string(h[:8]) != "EFI PART" {
		return errors.New("no signature")
	}
	bare := make([]byte, headerSize) // the checksum counts as zero
	copy(bare, h)
	le.PutUint32(bare[16:], 0)
	if le.Uint32(h[12:]) != headerSize || crc32.ChecksumIEEE(bare) != le.Uint32(h[16:]) {
		return errors.New("checksum of the header is wrong")
	}
	if n, size := le.Uint32(h[80:]), le.Uint32(h[84:]); n != entryCount || size != entrySize {
		return fmt.Errorf("%d entries of %d bytes, want %d of %d", n, size, entryCount, entrySize)
	}
	for _, field := range []struct {
		at  int
		out *int64
	}{{24, &t.My}, {32, &t.Alternate}, {40, &t.First}, {48, &t.Last}, {72, &t.Entries}} {
		v := le.Uint64(h[field.at:])
		if v > 1<<54 { // a byte offset must fit into 64 bits
			return fmt.Errorf("sector %d is out of range", v)
		}
		*field.out = int64(v)
	}
	if t.My != lba {
		return fmt.Errorf("header in sector %d says it is in %d", lba, t.My)
	}
	t.GUID = guid(h[56:72])
	return nil
}

func (t *Table) entry(i int) (artifact.Partition, bool) {
	e, le := t.array[i*entrySize:][:entrySize], binary.LittleEndian
	if allZero(e[:16]) {
		return artifact.Partition{}, false
	}
	first, last := int64(le.Uint64(e[32:])), int64(le.Uint64(e[40:]))
	var name []uint16
	for at := 56; at < entrySize; at += 2 {
		u := le.Uint16(e[at:])
		if u == 0 {
			break
		}
		name = append(name, u)
	}
	return artifact.Partition{
		Number: i + 1, Name: string(utf16.Decode(name)), Type: guid(e[:16]), GUID: guid(e[16:32]),
		Offset: first * t.sector, Size: (last - first + 1) * t.sector,
	}, true
}

// guid is the text of a GUID whose first three fields are little-endian.
func guid(b []byte) string {
	le := binary.LittleEndian
	return strings.ToUpper(fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16]))
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
