// Package cidata makes the file system that a node's seed lies in: a FAT16 with
// the label CIDATA and the documents of cloud-init's NoCloud data source in its
// root. The installer has no mkfs, and the general libraries for FAT write what
// fsck.vfat objects to; this one writes only what is needed here. The rules are
// those of Microsoft's "FAT: General Overview of On-Disk Format", version 1.03.
package cidata

import (
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Shape of the file system.
const (
	rootEntries = 512 // what every implementation expects of a FAT16
	entrySize   = 32
	media       = 0xf8 // a fixed disk
	endOfChain  = 0xffff
	// A file system with fewer clusters is a FAT12, one with more a FAT32.
	minClusters, maxClusters = 4085, 65524
	maxFiles                 = 32
)

// nameForm keeps names inside of what a long name holds in one directory entry's
// worth of characters each, and off the characters that FAT forbids.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// volume is the arithmetic of one file system. Sizes are in sectors.
type volume struct {
	sector     int // bytes
	total      int
	perCluster int
	fat        int // of one of the two
	clusters   int
}

const reserved = 1

func (v volume) root() int { return (rootEntries*entrySize + v.sector - 1) / v.sector }

// data is the sector of cluster 2, the first.
func (v volume) data() int { return reserved + 2*v.fat + v.root() }

// plan chooses the smallest clusters that make a FAT16 of size bytes.
func plan(size int64, sector int) (volume, error) {
	v := volume{sector: sector, total: int(size / int64(sector))}
	for v.perCluster = 1; v.perCluster <= 64; v.perCluster *= 2 {
		// An entry of two bytes for each cluster; more than enough clusters
		// are assumed, so the table may end a little behind the last one.
		v.fat = ((v.total/v.perCluster+2)*2 + sector - 1) / sector
		v.clusters = (v.total - v.data()) / v.perCluster
		if v.clusters >= minClusters && v.clusters <= maxClusters {
			return v, nil
		}
	}
	return volume{}, fmt.Errorf("%d bytes in sectors of %d make no FAT16", size, sector)
}

// Image returns a file system of size bytes for a disk with the given logical
// sector size, with a file for each document. serial is the volume's serial number.
// Files have no time: FAT's first day, 1980-01-01.
func Image(docs map[string][]byte, size int64, sector int, serial uint32) ([]byte, error) {
	v, err := plan(size, sector)
	if err != nil {
		return nil, fmt.Errorf("making the seed's file system: %w", err)
	}
	if len(docs) > maxFiles {
		return nil, fmt.Errorf("making the seed's file system: %d documents, more than %d", len(docs), maxFiles)
	}
	w := writer{volume: v, image: make([]byte, size), next: 2}
	w.boot(serial)
	w.entry(0, 0xfff8)
	w.entry(1, endOfChain)
	w.label()
	for i, name := range slices.Sorted(maps.Keys(docs)) {
		if err := w.file(i+1, name, docs[name]); err != nil {
			return nil, fmt.Errorf("making the seed's file system: %w", err)
		}
	}
	return w.image, nil
}

type writer struct {
	volume
	image []byte
	next  int // free cluster
	used  int // directory entries
}

// label is the name by which cloud-init finds the file system, padded to eleven.
const label = "CIDATA     "

func (w *writer) boot(serial uint32) {
	b, le := w.image, binary.LittleEndian
	copy(b, "\xeb\x3c\x90SLIPWAY ")
	le.PutUint16(b[11:], uint16(w.sector))
	b[13] = byte(w.perCluster)
	le.PutUint16(b[14:], reserved)
	b[16] = 2 // copies of the FAT
	le.PutUint16(b[17:], rootEntries)
	if w.total < 1<<16 {
		le.PutUint16(b[19:], uint16(w.total))
	} else {
		le.PutUint32(b[32:], uint32(w.total))
	}
	b[21] = media
	le.PutUint16(b[22:], uint16(w.fat))
	le.PutUint16(b[24:], 63)  // sectors a track and heads, as mkfs.fat says for
	le.PutUint16(b[26:], 255) // disks that have neither
	b[36] = 0x80              // first hard disk
	b[38] = 0x29              // serial, label and type follow
	le.PutUint32(b[39:], serial)
	copy(b[43:], label)
	copy(b[54:], "FAT16   ")
	b[510], b[511] = 0x55, 0xaa
}

// entry sets a FAT entry in both copies.
func (w *writer) entry(cluster int, value uint16) {
	for fat := range 2 {
		at := (reserved+fat*w.fat)*w.sector + cluster*2
		binary.LittleEndian.PutUint16(w.image[at:], value)
	}
}

func (w *writer) directory(entry [entrySize]byte) {
	at := (reserved+2*w.fat)*w.sector + w.used*entrySize
	copy(w.image[at:], entry[:])
	w.used++
}

// dayOne is 1980-01-01, the first date that FAT can write.
const dayOne = 1<<5 | 1

func (w *writer) label() {
	var e [entrySize]byte
	copy(e[:], label)
	e[11] = 0x08 // a label
	binary.LittleEndian.PutUint16(e[24:], dayOne)
	w.directory(e)
}

func (w *writer) file(number int, name string, content []byte) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("document %q: not a name for a document", name)
	}
	first, err := w.store(content)
	if err != nil {
		return fmt.Errorf("document %s: %w", name, err)
	}
	short := fmt.Sprintf("DOC~%-4d   ", number)
	w.longName(name, short)
	var e [entrySize]byte
	copy(e[:], short)
	e[11] = 0x20 // to be archived, as every file
	le := binary.LittleEndian
	for _, at := range []int{16, 18, 24} { // made, last read, changed
		le.PutUint16(e[at:], dayOne)
	}
	le.PutUint16(e[26:], uint16(first))
	le.PutUint32(e[28:], uint32(len(content)))
	w.directory(e)
	return nil
}

// store puts content into consecutive clusters and returns the first; an empty
// file has none.
func (w *writer) store(content []byte) (first int, err error) {
	size := w.perCluster * w.sector
	n := (len(content) + size - 1) / size
	if n == 0 {
		return 0, nil
	}
	if w.next+n > w.clusters+2 {
		return 0, fmt.Errorf("%d bytes do not fit", len(content))
	}
	first = w.next
	copy(w.image[(w.data()+(first-2)*w.perCluster)*w.sector:], content)
	for i := range n {
		value := uint16(first + i + 1)
		if i == n-1 {
			value = endOfChain
		}
		w.entry(first+i, value)
	}
	w.next += n
	return first, nil
}
