package desktest

import (
	"net/netip"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Clock is a clock that tests move.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Start is where clocks of tests begin.
func Start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// NewClock returns a clock that stands at Start.
func NewClock() *Clock { return &Clock{now: Start()} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Addresses of the machines of Cluster's nodes, and of one that is no node.
const (
	MAC1     = "52:54:00:12:34:56"
	MAC2     = "52:54:00:12:34:57"
	MAC3     = "52:54:00:12:34:58"
	Stranger = "52:54:00:99:99:99"
)

// Cluster is an active cluster with three nodes.
func Cluster() cluster.Cluster {
	c := cluster.Cluster{
		Environment: "lab", Status: cluster.StatusActive, Substrate: cluster.SubstrateVM, Name: "harbor",
		Network: cluster.Network{
			LAN: netip.MustParsePrefix("10.0.2.0/24"), PodCIDR: netip.MustParsePrefix("10.42.0.0/16"),
			ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), ClusterDNS: netip.MustParseAddr("10.43.0.10"), ClusterDomain: "cluster.local",
		},
		System: cluster.System{Locale: "C.UTF-8"}, Time: cluster.Time{Zone: "UTC"},
	}
	for i, mac := range []cluster.MAC{MAC1, MAC2, MAC3} {
		name := "n" + string(rune('1'+i))
		c.Nodes = append(c.Nodes, cluster.Node{
			Name: name, Role: cluster.RoleServer, Interfaces: []cluster.Interface{{MAC: mac, DHCP: true}},
			System: cluster.Selector{Serial: "slipway-" + name + "-system"},
			Data:   []cluster.DataDisk{{Name: "data", Selector: cluster.Selector{Serial: "slipway-" + name + "-data"}, Policy: cluster.PolicyKeep}},
		})
	}
	return c
}

// Image is what a desk of Cluster serves.
func Image() desk.Image {
	return desk.Image{Name: "slipway-lab", Index: digest.Of([]byte("index")), Plan: digest.Of([]byte("plan")), Key: "ssh-ed25519 AAAA test"}
}

// Report is what the machine with this address says about itself. Its system disk
// is blank.
func Report(mac, serial string) machine.Report {
	return machine.Report{
		Format:   machine.ReportFormat,
		Identity: machine.Identity{Vendor: "QEMU", Product: "Standard PC (Q35 + ICH9, 2009)", Serial: serial},
		Firmware: machine.Firmware{Mode: "uefi", Vendor: "EDK II", Version: "2025.02", TPM: "2.0"},
		CPU:      machine.CPU{Model: "QEMU TCG CPU version 2.5+", Cores: 2, Flags: []string{"aes", "avx2", "svm"}},
		Memory:   3 << 30,
		Disks: []machine.Disk{
			{Name: "vda", Serial: "slipway-" + serial + "-system", Transport: "virtio", Size: 20 << 30, Sector: 512},
			{Name: "vdb", Serial: "slipway-" + serial + "-data", Transport: "virtio", Size: 40 << 30, Sector: 512,
				Content: []machine.Signature{{Type: "ext4", Label: "longhorn"}}},
		},
		NICs:  []machine.NIC{{Name: "enp1s0", MAC: mac, Driver: "virtio_net", Link: true, Mbps: 1000, Boot: true}},
		Clock: Start(),
	}
}

// Receipt is one of a machine that wrote the image of the ticket.
func Receipt(t machine.Ticket, serial string) machine.Receipt {
	return machine.Receipt{
		Format: machine.ReceiptFormat, Ticket: t.ID, Node: t.Node, Identity: machine.Identity{Serial: serial},
		Disk:  machine.Disk{Name: "vda", Serial: t.System.Serial, Transport: "virtio", Size: 20 << 30, Sector: 512},
		Index: t.Index, Seed: digest.Of([]byte("seed")), Bytes: 888143872, ReadBack: true, Written: true,
		DiskGUID: "00000000-0000-4000-8000-000000000001",
		Data:     []machine.DataResult{{Name: "data", Action: "kept"}},
		Started:  Start(), Finished: Start().Add(time.Minute),
	}
}
