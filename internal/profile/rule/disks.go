package rule

import (
	"fmt"

	"github.com/slipway/slipway/internal/cluster"
)

// disk is one selector of the profile with the node it belongs to.
type disk struct {
	node   int
	path   string
	system bool
	*cluster.Selector
}

func disks(c *cluster.Cluster) []disk {
	var out []disk
	for i := range c.Nodes {
		n := &c.Nodes[i]
		out = append(out, disk{i, nodePath(i) + ".systemDisk", true, &n.System})
		for j := range n.Data {
			out = append(out, disk{i, fmt.Sprintf("%s.dataDisks[%d].disk", nodePath(i), j), false, &n.Data[j].Selector})
		}
	}
	return out
}

// diskSelectors wants every disk named by what it is. On metal that is a serial
// number or WWN: two drives of one model and size are common, and the wrong one
// would be written.
func diskSelectors(c *cluster.Cluster, report Report) {
	for _, d := range disks(c) {
		switch {
		case d.Serial == "" && d.WWN == "" && c.Substrate == cluster.SubstrateMetal:
			report(d.path, "a disk without serial or wwn", "on metal a disk is named by its serial number or WWN: lsblk -d -o NAME,SERIAL,WWN,SIZE,MODEL")
		case d.Serial == "" && d.WWN == "" && d.Model == "":
			report(d.path, "a disk without serial, wwn or model", "sizes only narrow down what one of these names")
		}
		if d.MinSize == cluster.SizeAuto || d.MaxSize == cluster.SizeAuto {
			report(d.path, "auto is no bound for the size of a disk", "leave the key out, or write a size such as 200GB")
		} else if d.MaxSize > 0 && d.MinSize > d.MaxSize {
			report(d.path+".minSize", fmt.Sprintf("minSize %s is more than maxSize %s", d.MinSize, d.MaxSize), "no disk is both")
		}
	}
}

// dataDiskNames keeps the mount paths of a node apart.
func dataDiskNames(c *cluster.Cluster, report Report) {
	for i := range c.Nodes {
		names := seen[string]{}
		for j, d := range c.Nodes[i].Data {
			path := fmt.Sprintf("%s.dataDisks[%d]", nodePath(i), j)
			if first, again := names.again(d.Name, path); again && d.Name != "" {
				report(path+".name", fmt.Sprintf("the data disk %s is given twice", d.Name), "the first is "+first)
			}
		}
	}
}

// diskOwners finds one disk in two places: a system disk that is a data disk,
// too, would be installed over its own data, and a serial number or WWN names one
// disk in the world, whichever node it is in.
func diskOwners(c *cluster.Cluster, report Report) {
	all := disks(c)
	for i, a := range all {
		for _, b := range all[i+1:] {
			field := sameDisk(a, b)
			if field == "" {
				continue
			}
			hint := "the other is " + a.path
			if a.node != b.node {
				hint += "; each disk needs an identity of its own, on virtual machines too"
			}
			report(b.path+field, "the same disk twice", hint)
			break
		}
	}
}

// sameDisk returns the key by which two selectors surely mean one disk, or "".
func sameDisk(a, b disk) string {
	switch {
	case a.Serial != "" && a.Serial == b.Serial:
		return ".serial"
	case a.WWN != "" && a.WWN == b.WWN:
		return ".wwn"
	case a.node == b.node && !a.IsZero() && *a.Selector == *b.Selector:
		return ".model"
	}
	return ""
}

// systemDiskRoom finds a system disk that may not be as large as what goes on it.
func systemDiskRoom(c *cluster.Cluster, report Report) {
	need := c.Image.ESPSize
	if c.Image.SlotSize > 0 {
		need += 2 * c.Image.SlotSize
	}
	for i, n := range c.Nodes {
		if limit := n.System.MaxSize; limit > 0 && limit <= need {
			report(nodePath(i)+".systemDisk.maxSize", fmt.Sprintf("a disk of %s has no room for the system partition and two slots (%s)", limit, need), "raise maxSize, or lower image.slotSize")
		}
	}
}
