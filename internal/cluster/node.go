package cluster

import "net/netip"

// Node is a member of the cluster as wanted.
type Node struct {
	Name       string      `yaml:"name" need:"yes" form:"label" doc:"Host name, a DNS label."`
	Role       Role        `yaml:"role" need:"yes" doc:"server (control plane and workloads) or agent."`
	Serial     string      `yaml:"serial" form:"line" doc:"SMBIOS serial number of the machine, a second way to recognise it."`
	Interfaces []Interface `yaml:"interfaces" need:"yes" doc:"Network interfaces, matched by MAC; others are left alone and never waited for."`
	System     Selector    `yaml:"systemDisk" need:"yes" doc:"The disk that is installed; must match exactly one."`
	Data       []DataDisk  `yaml:"dataDisks" doc:"Disks for Longhorn."`
	HostKeys   []string    `yaml:"hostKeys" form:"sshkey" doc:"SSH host keys of the node; bootstrap then talks to no other. Without them a node is known by what it reported after its install, or by bootstrap trust."`
}

// Address is the node's address in the cluster: the first one of its first
// interface. It is not valid when that interface takes what DHCP gives.
func (n Node) Address() netip.Addr {
	if len(n.Interfaces) == 0 || len(n.Interfaces[0].Addresses) == 0 {
		return netip.Addr{}
	}
	return n.Interfaces[0].Addresses[0].Addr()
}

// Role is what a node does in the cluster.
type Role string

// The roles of a node.
const (
	RoleServer Role = "server"
	RoleAgent  Role = "agent"
)

// Values lists what a Role may be.
func (Role) Values() []string { return []string{string(RoleServer), string(RoleAgent)} }

// Interface is one network interface of a node. The first one of a node carries
// the node's address in the cluster.
type Interface struct {
	MAC       MAC            `yaml:"mac" need:"yes" form:"mac" doc:"Hardware address, six colon-separated pairs."`
	DHCP      bool           `yaml:"dhcp" doc:"Take the address from DHCP (by MAC, not by DUID)."`
	Addresses []netip.Prefix `yaml:"addresses" form:"hostprefix" doc:"Static addresses with prefix length."`
	VLAN      int            `yaml:"vlan" doc:"VLAN id 1-4094 that carries the addresses; 0 or absent is untagged."`
	MTU       int            `yaml:"mtu" doc:"MTU in bytes, 1280-9216; absent leaves the driver's."`
}

// MAC is a hardware address in canonical form: lower case, colons.
type MAC string

// Selector names a disk by what it is, not by where it is plugged in. All given
// fields must hold; a selector without serial and wwn must match exactly one disk
// by its other fields.
type Selector struct {
	Serial  string `yaml:"serial" form:"line" doc:"Serial number of the disk."`
	WWN     string `yaml:"wwn" form:"wwn" doc:"World wide name (eui., nvme., naa. or 0x form)."`
	Model   string `yaml:"model" form:"line" doc:"Model, exact."`
	MinSize Size   `yaml:"minSize" form:"size" doc:"Smallest acceptable size."`
	MaxSize Size   `yaml:"maxSize" form:"size" doc:"Largest acceptable size."`
}

// IsZero reports whether nothing is selected by.
func (s Selector) IsZero() bool { return s == Selector{} }

// DataDisk is a disk for data that outlives the operating system.
type DataDisk struct {
	Name     string   `yaml:"name" need:"yes" form:"label" doc:"Short name, becomes part of the mount path."`
	Selector Selector `yaml:"disk" need:"yes" doc:"Which disk."`
	Policy   Policy   `yaml:"policy" default:"keep" doc:"What an install does with it: keep never writes it, wipe makes it anew."`
}

// Policy says what an install does with a data disk.
type Policy string

// The policies of a data disk.
const (
	PolicyKeep Policy = "keep"
	PolicyWipe Policy = "wipe"
)

// Values lists what a Policy may be.
func (Policy) Values() []string { return []string{string(PolicyKeep), string(PolicyWipe)} }
