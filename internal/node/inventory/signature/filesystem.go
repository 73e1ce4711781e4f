package signature

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/machine"
)

// format is a file system or container that has its mark at a fixed place.
type format struct {
	name     string
	offset   int64 // of the mark, bytes
	mark     string
	describe func(d device) (label, id string) // may be nil
}

func (f format) find(d device) (machine.Signature, bool) {
	if string(d.at(f.offset, int64(len(f.mark)))) != f.mark {
		return machine.Signature{}, false
	}
	s := machine.Signature{Type: f.name}
	switch f.name {
	case "ext4":
		s.Type = extName(d)
	case "vfat":
		if !hasBootMark(d) {
			return s, false
		}
	}
	if f.describe != nil {
		s.Label, s.UUID = f.describe(d)
	}
	return s, true
}

// filesystems are the marks, from the sources of the formats.
var filesystems = []format{
	{"ext4", 0x438, "\x53\xef", labelled(0x478, 16, 0x468)}, // ext2 and ext3 as well, see extName
	{"xfs", 0, "XFSB", labelled(108, 12, 32)},
	{"btrfs", 0x10040, "_BHRfS_M", labelled(0x1012b, 256, 0x10020)},
	{"vfat", 0x36, "FAT12   ", fatLabel(43, 39)},
	{"vfat", 0x36, "FAT16   ", fatLabel(43, 39)},
	{"vfat", 0x52, "FAT32   ", fatLabel(71, 67)},
	{"exfat", 3, "EXFAT   ", nil},
	{"ntfs", 3, "NTFS    ", func(d device) (string, string) {
		return "", fmt.Sprintf("%016X", binary.LittleEndian.Uint64(d.at(0x48, 8)))
	}},
	{"ReFS", 3, "ReFS\x00\x00\x00\x00", nil},
	{"iso9660", 0x8001, "CD001", func(d device) (string, string) { return text(d.at(0x8028, 32)), "" }},
	{"udf", 0x8001, "BEA01", nil},
	{"squashfs", 0, "hsqs", nil},
	{"erofs", 1024, "\xe2\xe1\xf5\xe0", nil},
	{"f2fs", 1024, "\x10\x20\xf5\xf2", nil},
	{"jfs", 0x8000, "JFS1", nil},
	{"reiserfs", 0x10034, "ReIsEr", nil},
	{"hfsplus", 1024, "H+\x00\x04", nil},
	{"apfs", 32, "NXSB", nil},
	{"ufs", 0x1055c, "\x19\x01\x54\x19", nil},
	{"VMFS_volume_member", 0x100000, "\x0d\xd0\x01\xc0", nil},
	{"swap", 4096 - 10, "SWAPSPACE2", labelled(1052, 16, 1036)},
	{"swap", 4096 - 10, "SWAP-SPACE", nil},
	{"crypto_LUKS", 0, "LUKS\xba\xbe", luks},
	{"BitLocker", 3, "-FVE-FS-", nil},
	{"DM_verity_hash", 0, "verity\x00\x00", nil},
	{"bcache", 4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", func(d device) (string, string) {
		return text(d.at(4096+72, 32)), uuid(d.at(4096+40, 16))
	}},
	{"ceph_bluestore", 0, "bluestore block device", nil},
}

func labelled(label, n, id int64) func(device) (string, string) {
	return func(d device) (string, string) { return text(d.at(label, n)), uuid(d.at(id, 16)) }
}

func fatLabel(label, serial int64) func(device) (string, string) {
	return func(d device) (string, string) {
		name := text(d.at(label, 11))
		if name == "NO NAME" {
			name = ""
		}
		n := binary.LittleEndian.Uint32(d.at(serial, 4))
		return name, fmt.Sprintf("%04X-%04X", n>>16, n&0xffff)
	}
}

func hasBootMark(d device) bool { return string(d.at(510, 2)) == "\x55\xaa" }

// luks has its UUID as text in both versions, and a label in the second only.
func luks(d device) (label, id string) {
	if d.at(6, 2)[1] == 2 {
		label = text(d.at(24, 48))
	}
	return label, text(d.at(168, 40))
}

// extName tells the three generations apart, as far as they differ.
func extName(d device) string {
	le := binary.LittleEndian
	compat, incompat := le.Uint32(d.at(0x45c, 4)), le.Uint32(d.at(0x460, 4))
	const (
		hasJournal = 0x4
		onlyExt4   = 0x40 | 0x80 | 0x200 // extents, 64 bit, flexible groups
	)
	switch {
	case incompat&onlyExt4 != 0:
		return "ext4"
	case compat&hasJournal != 0:
		return "ext3"
	default:
		return "ext2"
	}
}

func lvmMember(d device) (machine.Signature, bool) {
	for sector := range int64(4) {
		b := d.at(sector*512, 512)
		if string(b[:8]) == "LABELONE" && string(b[24:32]) == "LVM2 001" {
			return machine.Signature{Type: "LVM2_member", UUID: lvmID(string(b[32:64]))}, true
		}
	}
	return machine.Signature{}, false
}

// lvmID puts the hyphens where LVM shows them.
func lvmID(s string) string {
	var parts []string
	for _, n := range []int{6, 4, 4, 4, 4, 4, 6} {
		parts, s = append(parts, text([]byte(s[:n]))), s[n:]
	}
	return strings.Join(parts, "-")
}
