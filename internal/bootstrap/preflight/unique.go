package preflight

import (
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/disklayout"
	"github.com/slipway/slipway/internal/machine"
)

// unique finds what two nodes have in common and only one may have: copies of a disk,
// an image with an identity in it, a machine that was listed twice.
func (l *list) unique(seen []facts.Seen) {
	for i, a := range seen {
		for _, b := range seen[i+1:] {
			both := func(what, value, why string) {
				l.add("", "%s and %s have the same %s %s", a.Node, b.Node, what, value)("%s", why)
			}
			if v := a.Facts.MachineID; v != "" && v == b.Facts.MachineID {
				both("machine id", v, "one is a copy of the other, and DHCP would give both one address: install one of them anew")
			}
			if v := a.Facts.Initiator; v != "" && v == b.Facts.Initiator {
				both("iSCSI initiator name", v, "one is a copy of the other, and volumes would be attached to the wrong node: install one of them anew")
			}
			if v := a.Facts.BootID; v != "" && v == b.Facts.BootID {
				both("boot id", v, "it is one machine that answers at both addresses: correct the profile")
			}
			if v := common(keys(a.Facts), keys(b.Facts)); v != "" {
				both("SSH host key", v, "one is a copy of the other, and could pass for it: install one of them anew")
			}
			if v := common(macs(a.Facts), macs(b.Facts)); v != "" {
				both("hardware address", v, "correct the machines: a copy of a virtual machine keeps its address unless told otherwise")
			}
			if v := common(fileSystems(a.Facts), fileSystems(b.Facts)); v != "" {
				both("data file system UUID", v, "one disk is a copy of the other, and to Longhorn they are one: erase the one that was copied (wipefs -a)")
			}
		}
	}
}

func common(a, b []string) string {
	for _, v := range a {
		if slices.Contains(b, v) {
			return v
		}
	}
	return ""
}

// keys are host keys without their comments.
func keys(f facts.Facts) []string {
	var out []string
	for _, k := range f.HostKeys {
		if w := strings.Fields(k); len(w) > 1 {
			out = append(out, w[0]+" "+w[1])
		}
	}
	return out
}

func macs(f facts.Facts) []string {
	var out []string
	for _, i := range f.Interfaces {
		if i.MAC != "" && i.VLAN == 0 {
			out = append(out, strings.ToLower(i.MAC))
		}
	}
	return out
}

// fileSystems are those on Slipway's data disks. Of the system's disk, a copy is told
// by the machine id; others may be volumes that happen to be attached.
func fileSystems(f facts.Facts) []string {
	var out []string
	for _, d := range f.Disks {
		ours := slices.ContainsFunc(d.Content, func(s machine.Signature) bool { return strings.EqualFold(s.Label, disklayout.NameData) })
		for _, s := range d.Content {
			if ours && !d.Boot && (s.Type == "ext4" || s.Type == "xfs") && s.UUID != "" {
				out = append(out, strings.ToLower(s.UUID))
			}
		}
	}
	return out
}
