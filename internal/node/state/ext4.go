// Package state makes, checks, grows and mounts the one writable file system of a
// node.
package state

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/slipway/slipway/internal/diag"
)

// headSize is how much of a partition is looked at, in bytes: enough for the
// signatures of everything that mkfs programs write near the start.
const headSize = 128 << 10

// Superblock is what matters of ext4's (kernel documentation, ext4 super block).
type Superblock struct {
	Blocks    uint64
	BlockSize int64
	Clean     bool // no error was recorded; an unreplayed journal is no error
}

// Size is the size of the file system, in bytes.
func (s Superblock) Size() int64 { return int64(s.Blocks) * s.BlockSize }

// readSuperblock reads ext4's superblock from the head of a partition.
func readSuperblock(head []byte) (Superblock, bool) {
	const at, magic = 1024, 0xEF53
	if len(head) < at+1024 {
		return Superblock{}, false
	}
	b := head[at:]
	if binary.LittleEndian.Uint16(b[0x38:]) != magic {
		return Superblock{}, false
	}
	const valid, errors = 1, 2
	status := binary.LittleEndian.Uint16(b[0x3A:])
	return Superblock{
		Blocks:    uint64(binary.LittleEndian.Uint32(b[0x4:])) | uint64(binary.LittleEndian.Uint32(b[0x150:]))<<32,
		BlockSize: 1024 << (binary.LittleEndian.Uint32(b[0x18:]) & 0xF),
		Clean:     status&valid != 0 && status&errors == 0,
	}, true
}

// Action is what to do with the state partition.
type Action int

// The actions.
const (
	Use   Action = iota // it holds a file system: mount it
	Check               // it holds one with recorded errors: repair, then mount
	Make                // it holds nothing: make one
)

// Decide says what to do with a state partition that begins with head. Something
// that is not ours is never overwritten: only a partition that nodeinit itself
// made and never completed (unfinished), or one that begins with zeros only.
func Decide(head []byte, unfinished bool) (Action, error) {
	if unfinished {
		return Make, nil
	}
	if super, ok := readSuperblock(head); ok {
		if !super.Clean {
			return Check, nil
		}
		return Use, nil
	}
	if len(bytes.Trim(head, "\x00")) == 0 {
		return Make, nil
	}
	return Use, diag.WithHint(fmt.Errorf("the state partition holds %s instead of ext4", guess(head)),
		"it is left as it is; if nothing on it is needed, erase it (wipefs -a) from another system, then start again")
}

// guess names well-known content.
func guess(head []byte) string {
	signatures := []struct {
		at   int
		text string
		name string
	}{
		{0, "XFSB", "an XFS file system"},
		{0, "LUKS\xba\xbe", "an encrypted volume (LUKS)"},
		{0, "hsqs", "a squashfs"},
		{512, "LABELONE", "an LVM volume"},
		{0x10040, "_BHRfS_M", "a btrfs file system"},
		{4096, "\xfc\x4e\x2b\xa9", "a member of a RAID"},
		{1024, "\x10\x20\xf5\xf2", "an F2FS file system"},
		{3, "NTFS    ", "an NTFS file system"},
		{82, "FAT32   ", "a FAT file system"},
	}
	for _, s := range signatures {
		if len(head) >= s.at+len(s.text) && string(head[s.at:s.at+len(s.text)]) == s.text {
			return s.name
		}
	}
	return "unknown data"
}
