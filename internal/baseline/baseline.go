// Package baseline is the contract between a node's seed, which writes what the
// node must look like, and the node, which checks it before it calls itself
// ready for k3s.
package baseline

// Path is where cloud-init writes the baseline on the node. It lies on a tmpfs,
// so that a boot without a seed has no baseline and cannot be ready.
const Path = "/run/slipway/baseline.json"

// Format is the version of the document.
const Format = "slipway-baseline/1"

// Baseline is what must hold on a node before k3s may start.
type Baseline struct {
	Format      string            `json:"format"`
	Environment string            `json:"environment"`
	Cluster     string            `json:"cluster"`
	Node        string            `json:"node"` // host name
	Interfaces  []Interface       `json:"interfaces"`
	Users       []string          `json:"users"`
	Modules     []string          `json:"modules"` // loaded or built in
	Sysctls     map[string]string `json:"sysctls"`
	Units       []string          `json:"units"`    // systemd units that must be active
	Commands    []string          `json:"commands"` // programs that must be in PATH
}

// Interface is a network interface that must be up.
type Interface struct {
	MAC       string   `json:"mac"`
	DHCP      bool     `json:"dhcp,omitempty"`      // at least one global address is needed
	Addresses []string `json:"addresses,omitempty"` // with prefix length; all are needed
	VLAN      int      `json:"vlan,omitempty"`
}
