// Package data gives a node its data disks: a file system of its own on a disk that
// is blank, and a mount on every boot, before k3s. A disk that holds anything is
// never written: what is Slipway's is taken as it is, anything else is refused.
package data

import (
	"fmt"
	"path"
	"slices"
	"strings"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
)

// item is one data disk, and what is done about it.
type item struct {
	want told.WantedDisk
	disk machine.Disk
	uuid string // of the file system that is there
	make bool   // the disk is blank: a file system is made
}

// plan decides about every wanted disk before anything is written.
func plan(disks []machine.Disk, w told.Wanted) ([]item, error) {
	if w.Format != told.DataFormat {
		return nil, diag.WithHint(fmt.Errorf("the data disks are wanted as %q, this node knows %q", w.Format, told.DataFormat), "the node's image and bootstrap are of different releases: use the ones of one build")
	}
	if err := checkPaths(w); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	choices, err := diskselect.Running(disks, w.Orders())
	if err != nil {
		return nil, refused(err, "name the disk as the inventory shows it (pxed machines), or take what is needed off it and erase it: wipefs -a")
	}
	var out []item
	for i, c := range choices {
		it := item{want: w.Disks[i], disk: c.Disk, make: c.Blank()}
		if !it.make {
			if it.uuid = fileSystem(c.Disk); it.uuid == "" {
				return nil, refused(fmt.Errorf("data disk %s: %s has a partition %s without a file system that this node knows", c.Name, diskselect.Describe(c.Disk), disklayout.NameData),
					"when nothing on it is needed, erase it: wipefs -a /dev/"+c.Disk.Name)
			}
		}
		out = append(out, it)
	}
	return out, unique(out)
}

func refused(err error, hint string) error { return exit.With(exit.Refused, diag.WithHint(err, hint)) }

// unique refuses copies: Longhorn recognises a disk by its file system.
func unique(items []item) error {
	for i, a := range items {
		for _, b := range items[i+1:] {
			if a.uuid != "" && strings.EqualFold(a.uuid, b.uuid) {
				return refused(fmt.Errorf("%s and %s have the same file system UUID %s: one is a copy of the other", diskselect.Describe(a.disk), diskselect.Describe(b.disk), a.uuid),
					"take out the one that must not be used")
			}
		}
	}
	return nil
}

// fileSystem is the UUID of the file system on a data disk of ours, or "".
func fileSystem(d machine.Disk) string {
	for _, s := range d.Content {
		ours := strings.EqualFold(s.Label, disklayout.NameData) || slices.ContainsFunc(d.Content, func(p machine.Signature) bool {
			return p.Partition == s.Partition && p.Type == "partition" && strings.EqualFold(p.Label, disklayout.NameData)
		})
		if ours && (s.Type == "ext4" || s.Type == "xfs") && s.UUID != "" {
			return strings.ToLower(s.UUID)
		}
	}
	return ""
}

// checkPaths keeps mounts apart from each other and from what the system needs.
func checkPaths(w told.Wanted) error {
	seen := map[string]bool{}
	for _, d := range w.Disks {
		switch {
		case d.Name == "" || d.Disk.IsZero():
			return fmt.Errorf("a data disk without a name, or without what it is recognised by")
		case d.Path != path.Clean(d.Path) || !strings.HasPrefix(d.Path, "/var/") && !strings.HasPrefix(d.Path, "/opt/") || strings.ContainsAny(d.Path, " \t\n\\"):
			return fmt.Errorf("data disk %s cannot be mounted at %q: below /var or /opt, and without spaces", d.Name, d.Path)
		case seen[d.Path]:
			return fmt.Errorf("two data disks at %s", d.Path)
		}
		seen[d.Path] = true
	}
	return nil
}
