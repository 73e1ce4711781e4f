package node

import (
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/disklayout"
)

// otherEntry returns the boot loader's name of an entry for the other slot, if the
// EFI system partition has one with tries left.
func (b *boot) otherEntry() (string, bool) {
	p, ok := b.disk.Find(disklayout.NameESP)
	if !ok || b.line.Slot == "" {
		return "", false
	}
	if err := unix.Mount(p.Path, mountDir, "vfat", unix.MS_RDONLY, ""); err != nil {
		return "", false
	}
	defer func() { _ = unix.Unmount(mountDir, 0) }()
	files, err := os.ReadDir(filepath.Join(mountDir, "loader/entries"))
	if err != nil {
		return "", false
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name()
	}
	return entryOf(names, b.line.Other())
}

// entryOf picks the entry of a slot among file names, and returns its ID. The ID of
// "slot-b+2-1.conf" is "slot-b.conf": the counters do not belong to it. One with no
// tries left has failed before and is not offered (Boot Loader Specification).
func entryOf(names []string, slot string) (string, bool) {
	name := regexp.MustCompile(`^(slot-` + regexp.QuoteMeta(slot) + `[^+]*)(?:\+(\d+)(?:-\d+)?)?\.conf$`)
	for _, n := range names {
		if m := name.FindStringSubmatch(n); m != nil && m[2] != "0" {
			return m[1] + ".conf", true
		}
	}
	return "", false
}
