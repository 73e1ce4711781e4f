package facts

import (
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// DataFormat is the version of Data as a document, also of the one that a node keeps.
const DataFormat = "slipway-data/1"

// DataPath is where a node keeps its Data. It lies on state: data disks are mounted
// again at each boot, before k3s.
const DataPath = "/etc/slipway/data.json"

// Data is the data disks that a node has taken.
type Data struct {
	Format string  `json:"format"`
	Mounts []Mount `json:"mounts"`
}

// Mount is one data disk that the node has taken.
type Mount struct {
	Name   string `json:"name"`   // of the disk in the profile
	Serial string `json:"serial"` // of the disk, or its WWN
	UUID   string `json:"uuid"`   // of its file system
	Path   string `json:"path"`
	// Made says that this node made the file system; otherwise it was found.
	Made bool `json:"made,omitempty"`
	// Mounted says that it is mounted now; the kept document does not tell.
	Mounted bool `json:"mounted"`
}

// Wanted is which data disks a node shall have.
type Wanted struct {
	Format string       `json:"format"` // DataFormat
	Disks  []WantedDisk `json:"disks"`
}

// WantedDisk is one data disk and where it shall be mounted.
type WantedDisk struct {
	Name string           `json:"name"`
	Disk cluster.Selector `json:"disk"`
	Path string           `json:"path"`
}

// Want is what the profile wants of a node. Without Longhorn nobody uses the disks.
func Want(c cluster.Cluster, n cluster.Node) Wanted {
	w := Wanted{Format: DataFormat, Disks: []WantedDisk{}}
	if !c.Longhorn.Enabled {
		return w
	}
	for _, d := range n.Data {
		w.Disks = append(w.Disks, WantedDisk{Name: d.Name, Disk: d.Selector, Path: c.Longhorn.DataMount(d.Name)})
	}
	return w
}

// Orders is the same for the choice of disks.
func (w Wanted) Orders() []machine.DataOrder {
	var out []machine.DataOrder
	for _, d := range w.Disks {
		out = append(out, machine.DataOrder{Name: d.Name, Disk: d.Disk, Policy: cluster.PolicyKeep})
	}
	return out
}
