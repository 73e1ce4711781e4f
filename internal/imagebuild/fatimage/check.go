package fatimage

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// epoch1980 is the beginning of FAT's calendar.
const epoch1980 = 315532800

// label is what mkfs.vfat and firmware agree on without a code page.
var label = regexp.MustCompile(`^[A-Z0-9_-]{1,11}$`)

// element is one element of a path: printable ASCII without what FAT forbids and
// without mtools' patterns. FAT drops trailing dots and spaces silently.
var element = regexp.MustCompile(`^[A-Za-z0-9!#$%&'()+,;=@^_{}~.-]([A-Za-z0-9!#$%&'()+,;=@^_{}~ .-]*[A-Za-z0-9!#$%&'()+,;=@^_{}~-])?$`)

func check(s Spec, offset int64) error {
	switch {
	case !label.MatchString(s.Label):
		return fmt.Errorf("label %q is not 1-11 of A-Z, 0-9, - and _", s.Label)
	case s.Type != FAT16 && s.Type != FAT32:
		return fmt.Errorf("no such type: FAT%d", s.Type)
	case s.SectorSize != 512 && s.SectorSize != 4096:
		return fmt.Errorf("sector size %d is neither 512 nor 4096", s.SectorSize)
	case s.Size <= 0 || s.Size%4096 != 0:
		return fmt.Errorf("size %d is not a multiple of 4096", s.Size)
	case offset < 0 || offset%s.SectorSize != 0:
		return fmt.Errorf("offset %d is not a multiple of the sector size", offset)
	case s.Epoch < epoch1980:
		return fmt.Errorf("time %d is before 1980, where FAT begins", s.Epoch)
	}
	return checkNames(s.Entries)
}

// checkNames refuses names that FAT cannot hold or cannot tell apart: it keeps
// the case of a name and ignores it in comparisons.
func checkNames(entries []Entry) error {
	seen := map[string]string{}
	for _, d := range directories(entries) {
		if old, twice := seen[strings.ToLower(d)]; twice {
			return fmt.Errorf("%s and %s are the same name on FAT", old, d)
		}
		seen[strings.ToLower(d)] = d
	}
	for _, e := range entries {
		if !fs.ValidPath(e.Path) {
			return fmt.Errorf("%q is not a clean relative path", e.Path)
		}
		for part := range strings.SplitSeq(e.Path, "/") {
			if !element.MatchString(part) {
				return fmt.Errorf("%q is not a name for FAT", part)
			}
		}
		if old, twice := seen[strings.ToLower(e.Path)]; twice {
			return fmt.Errorf("%s and %s are the same name on FAT", old, e.Path)
		}
		seen[strings.ToLower(e.Path)] = e.Path
	}
	return nil
}

// directories lists the directories of the entries, parents first.
func directories(entries []Entry) []string {
	var dirs []string
	for _, e := range entries {
		for d := path.Dir(e.Path); d != "." && d != "/"; d = path.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
