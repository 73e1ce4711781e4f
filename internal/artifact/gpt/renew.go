package gpt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// Renew gives a disk and all its partitions GUIDs of their own. head is the start
// of the image, HeadSize bytes at least. next returns 16 random bytes at each call;
// they become a version 4 GUID (RFC 9562, section 5.4). The results are head with
// the new table, and the GUID of the disk. The backup is left to Move.
func Renew(head []byte, sector int, next func() [16]byte) (renewed []byte, disk string, err error) {
	if len(head) < HeadSize(sector) {
		return nil, "", fmt.Errorf("renewing the partition table: %d bytes of it, want %d", len(head), HeadSize(sector))
	}
	t, err := Read(bytes.NewReader(head), sector, 1)
	if err != nil {
		return nil, "", fmt.Errorf("renewing the partition table: %w", err)
	}
	array, header := slices.Clone(t.array), slices.Clone(t.header)
	for _, p := range t.Partitions {
		id := random(next)
		copy(array[(p.Number-1)*entrySize+16:], id[:])
	}
	id := random(next)
	copy(header[56:72], id[:])
	binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(array))
	t.header = header
	renewed = slices.Clone(head)
	copy(renewed[sector:], t.place(1, t.Alternate, t.Last, t.Entries))
	copy(renewed[t.Entries*int64(sector):], array)
	return renewed, guid(id[:]), nil
}

// random marks random bytes as a version 4 GUID. On the disk the first three
// fields are little-endian, so the version stands in the eighth byte.
func random(next func() [16]byte) [16]byte {
	id := next()
	id[7] = id[7]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
