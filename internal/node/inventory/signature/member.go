package signature

import (
	"encoding/binary"

	"github.com/slipway/slipway/internal/machine"
)

const raidType = "linux_raid_member"

// raidMember looks in the four places of Linux md: version 1.1 at the start, 1.2
// at 4 KiB, 1.0 near the end, and 0.90 in the last 64 KiB (md(4)).
func raidMember(d device) (machine.Signature, bool) {
	sectors := d.size / 512
	for _, at := range []int64{0, 4096, (sectors - 16) &^ 7 * 512} {
		b := d.at(at, 64)
		if binary.LittleEndian.Uint32(b) == raidMagic && binary.LittleEndian.Uint32(b[4:]) == 1 {
			return machine.Signature{Type: raidType, Label: text(b[32:64]), UUID: uuid(b[16:32])}, true
		}
	}
	b := d.at(d.size&^(64<<10-1)-64<<10, 64)
	if binary.LittleEndian.Uint32(b) == raidMagic || binary.BigEndian.Uint32(b) == raidMagic {
		return machine.Signature{Type: raidType, UUID: uuid(append(append([]byte{}, b[20:24]...), b[52:64]...))}, true
	}
	return machine.Signature{}, false
}

const raidMagic = 0xa92b4efc

// zfsMember looks for an uberblock in the four labels of a vdev, two at each end:
// the second half of each label is a ring of them, at least 1 KiB apart.
func zfsMember(d device) (machine.Signature, bool) {
	const label, ring = 256 << 10, 128 << 10
	end := d.size &^ (label - 1)
	for _, at := range []int64{0, label, end - 2*label, end - label} {
		b := d.at(at+ring, ring)
		for i := 0; i < len(b); i += 1 << 10 {
			if n := b[i : i+8]; binary.LittleEndian.Uint64(n) == uberMagic || binary.BigEndian.Uint64(n) == uberMagic {
				return machine.Signature{Type: "zfs_member"}, true
			}
		}
	}
	return machine.Signature{}, false
}

const uberMagic = 0x00bab10c

// firmwareRAID finds the metadata that RAID firmware leaves in the last sectors.
func firmwareRAID(d device) (machine.Signature, bool) {
	switch {
	case string(d.at(d.size-1024, 23)) == "Intel Raid ISM Cfg Sig.":
		return machine.Signature{Type: "isw_raid_member"}, true
	case binary.BigEndian.Uint32(d.at(d.size-512, 4)) == 0xde11de11:
		return machine.Signature{Type: "ddf_raid_member"}, true
	}
	return machine.Signature{}, false
}
