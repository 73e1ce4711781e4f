// Package slot opens the read-only system in a slot. A slot holds a squashfs,
// padded to 4096 bytes, then a dm-verity superblock and hash tree. The root hash
// comes from the boot entry and is named by the signed index, so every block that
// the kernel reads is bound to that signature.
package slot

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/slipway/slipway/internal/diag"
)

// Block is the size of verity's data and hash blocks, in bytes.
const Block = 4096

// Layout says where things are inside a slot.
type Layout struct {
	DataBlocks uint64 // of squashfs, Block bytes each
	HashStart  uint64 // block number of the tree's first block
	Salt       string // hex, or "-" for none
	Algorithm  string
}

// Size is the size of the verified data, in bytes.
func (l Layout) Size() int64 { return int64(l.DataBlocks) * Block }

// ReadLayout reads both superblocks of a slot.
func ReadLayout(r io.ReaderAt) (Layout, error) {
	squash := make([]byte, 96)
	if _, err := r.ReadAt(squash, 0); err != nil {
		return Layout{}, fmt.Errorf("reading the squashfs superblock: %w", err)
	}
	used, err := squashfsSize(squash)
	if err != nil {
		return Layout{}, err
	}
	offset := (used + Block - 1) / Block * Block
	super := make([]byte, 512)
	if _, err := r.ReadAt(super, offset); err != nil {
		return Layout{}, fmt.Errorf("reading the verity superblock at byte %d: %w", offset, err)
	}
	l, err := verityLayout(super)
	if err != nil {
		return Layout{}, fmt.Errorf("verity superblock at byte %d: %w", offset, err)
	}
	if l.Size() != offset {
		return Layout{}, fmt.Errorf("the verity tree covers %d bytes, but the squashfs has %d", l.Size(), offset)
	}
	// The tree begins at the first whole block after the superblock.
	l.HashStart = uint64(offset)/Block + 1
	return l, nil
}

// squashfsSize returns the bytes that a squashfs uses (squashfs 4.0 superblock:
// magic at 0, bytes_used at 40).
func squashfsSize(b []byte) (int64, error) {
	if string(b[:4]) != "hsqs" {
		return 0, diag.WithHint(fmt.Errorf("it holds no squashfs"), "the slot is empty or was overwritten")
	}
	used := binary.LittleEndian.Uint64(b[40:])
	if used < 96 || used > 1<<40 {
		return 0, fmt.Errorf("the squashfs says it has %d bytes", used)
	}
	return int64(used), nil
}

// verityLayout reads the on-disk superblock that veritysetup writes (dm-verity
// superblock version 1: signature, version, hash type, UUID, algorithm, block
// sizes, data blocks, salt).
func verityLayout(b []byte) (Layout, error) {
	if string(b[:8]) != "verity\x00\x00" {
		return Layout{}, fmt.Errorf("there is none")
	}
	version, hashType := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if version != 1 || hashType != 1 {
		return Layout{}, fmt.Errorf("version %d with hash type %d is not supported (1 and 1)", version, hashType)
	}
	algorithm := cString(b[32:64])
	data, hash := binary.LittleEndian.Uint32(b[64:]), binary.LittleEndian.Uint32(b[68:])
	if algorithm != "sha256" || data != Block || hash != Block {
		return Layout{}, fmt.Errorf("%s with blocks of %d and %d bytes is not supported (sha256, %d, %d)", algorithm, data, hash, Block, Block)
	}
	salt := "-"
	if n := binary.LittleEndian.Uint16(b[80:]); n > 256 {
		return Layout{}, fmt.Errorf("salt of %d bytes", n)
	} else if n > 0 {
		salt = hex.EncodeToString(b[88 : 88+int(n)])
	}
	return Layout{DataBlocks: binary.LittleEndian.Uint64(b[72:]), Salt: salt, Algorithm: algorithm}, nil
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
