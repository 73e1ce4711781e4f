package rule

import (
	"fmt"
	"slices"

	"github.com/slipway/slipway/internal/cluster"
)

// Bounds of the image. Below 260 MiB a FAT file system with 4096-byte sectors has
// fewer than the 65525 clusters that make it FAT32, and firmware rejects it.
const (
	minESP  = cluster.Size(260 << 20)
	maxESP  = cluster.Size(4 << 30)
	minSlot = cluster.Size(256 << 20)
	maxSlot = cluster.Size(64 << 30)
	mib     = cluster.Size(1 << 20)
)

func imageSizes(c *cluster.Cluster, report Report) {
	if s := c.Image.ESPSize; s != 0 && (s < minESP || s > maxESP || s%mib != 0) {
		report("image.espSize", "an EFI system partition of "+s.String(), fmt.Sprintf("whole MiB from %s (firmware rejects smaller FAT32 on 4K sectors) to %s", minESP, maxESP))
	}
	if s := c.Image.SlotSize; s != 0 && s != cluster.SizeAuto && (s < minSlot || s > maxSlot || s%mib != 0) {
		report("image.slotSize", "a slot of "+s.String(), fmt.Sprintf("auto, or whole MiB from %s to %s", minSlot, maxSlot))
	}
}

// suite is the Debian release that nodes are made of.
const suite = "trixie"

func debianArchive(c *cluster.Cluster, report Report) {
	d := &c.Debian
	if d.Suite != "" && d.Suite != suite {
		report("debian.suite", d.Suite+" is not supported", "nodes are made of "+suite+" (Debian 13)")
	}
	if len(d.Components) > 0 && !slices.Contains(d.Components, "main") {
		report("debian.components", "the component main is missing", "everything else depends on it")
	}
}

// metalFirmware wants the component that holds the firmware of network chips.
func metalFirmware(c *cluster.Cluster, report Report) {
	const firmware = "non-free-firmware"
	if c.Substrate == cluster.SubstrateMetal && len(c.Debian.Components) > 0 && !slices.Contains(c.Debian.Components, firmware) {
		report("debian.components", "metal without "+firmware, "the firmware of common network chips and the CPU's microcode are in it; add it in the base")
	}
}
