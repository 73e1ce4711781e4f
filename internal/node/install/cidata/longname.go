package cidata

import "encoding/binary"

// perEntry is how many characters of a long name a directory entry holds.
const perEntry = 13

// longName writes the entries with a file's real name, which stand before the one
// with its short name, the last piece first.
func (w *writer) longName(name, short string) {
	sum := checksum(short)
	pieces := (len(name) + perEntry - 1) / perEntry
	for i := pieces; i > 0; i-- {
		order := byte(i)
		if i == pieces {
			order |= 0x40 // the last piece
		}
		w.directory(piece(name, i-1, order, sum))
	}
}

// piece is the entry with the i-th piece of a name. The name is ended by a zero
// unless it fills the piece, and padded with ones.
func piece(name string, i int, order, sum byte) [entrySize]byte {
	var e [entrySize]byte
	e[0], e[11], e[13] = order, 0x0f, sum
	at := i * perEntry
	for _, run := range [][2]int{{1, 5}, {14, 6}, {28, 2}} {
		for k := range run[1] {
			value := uint16(0xffff)
			switch {
			case at < len(name):
				value = uint16(name[at])
			case at == len(name):
				value = 0
			}
			binary.LittleEndian.PutUint16(e[run[0]+2*k:], value)
			at++
		}
	}
	return e
}

// checksum ties a long name to its short one.
func checksum(short string) byte {
	var sum byte
	for _, c := range []byte(short[:11]) {
		sum = sum>>1 | sum<<7
		sum += c
	}
	return sum
}
