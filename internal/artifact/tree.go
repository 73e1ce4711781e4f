package artifact

import (
	"bytes"
	"fmt"

	"github.com/slipway/slipway/internal/digest"
)

// TreeDigest is the digest of a raw disk image: the SHA-256 of a short text that
// lists the image's size, the chunk size, and for each chunk its raw digest or
// the word "hole". It binds every byte of the image, as a hole can only be zeros,
// and spares makers and checkers the hashing of gigabytes of them.
//
// The text, each line ended by a newline:
//
//	slipway-tree/1
//	<size of the image in bytes>
//	<chunk size in bytes>
//	sha256:<64 hex digits> or hole     once for each chunk, in order
func TreeDigest(size, chunkSize int64, chunks []Chunk) digest.Digest {
	var b bytes.Buffer
	fmt.Fprintf(&b, "slipway-tree/1\n%d\n%d\n", size, chunkSize)
	for _, c := range chunks {
		if c.Hole {
			b.WriteString("hole\n")
			continue
		}
		b.WriteString(c.Raw.String())
		b.WriteByte('\n')
	}
	return digest.Of(b.Bytes())
}

// Span is the place of chunk i in the raw image: offset and length in bytes. The
// last chunk may be shorter than the others.
func (d Disk) Span(i int) (offset, length int64) {
	offset = int64(i) * d.ChunkSize
	return offset, min(d.ChunkSize, d.Size-offset)
}

// PackedSize is the size of the compressed image, bytes.
func (d Disk) PackedSize() int64 {
	var n int64
	for _, c := range d.Chunks {
		n += c.Size
	}
	return n
}

// At names the place in the image that holds the byte at offset, for people: a
// partition and the offset inside it, or what lies around the partitions.
func (d Disk) At(offset int64) string {
	for _, p := range d.Partitions {
		if offset >= p.Offset && offset < p.Offset+p.Size {
			return fmt.Sprintf("partition %d (%s), byte %d", p.Number, p.Name, offset-p.Offset)
		}
	}
	table := gptSectors * int64(d.SectorSize)
	switch {
	case offset < int64(d.SectorSize):
		return "protective MBR"
	case offset < table+int64(d.SectorSize):
		return "primary GPT"
	case offset >= d.Size-table:
		return "backup GPT"
	default:
		return "unpartitioned space"
	}
}

// gptSectors is the size of a GPT header and its 128 entries on a disk with
// 512-byte sectors (UEFI specification 5.3.1); fewer are needed on larger ones.
const gptSectors = 33

// Find returns the files of a role, in the order of the index.
func (x Index) Find(role Role) []File {
	var out []File
	for _, f := range x.Files {
		if f.Role == role {
			out = append(out, f)
		}
	}
	return out
}

// One returns the only file of a role; ok is false when there is none.
func (x Index) One(role Role) (f File, ok bool) {
	files := x.Find(role)
	if len(files) != 1 {
		return File{}, false
	}
	return files[0], true
}

// Partition returns the partition of that name.
func (d Disk) Partition(name string) (Partition, bool) {
	for _, p := range d.Partitions {
		if p.Name == name {
			return p, true
		}
	}
	return Partition{}, false
}
