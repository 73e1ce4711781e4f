// Package facts is what a running node and bootstrap tell each other: what the node
// is and holds, and which data disks it shall have. slipway-node speaks it in JSON.
// It holds no secret, so it can be logged and kept.
package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// Format is the version of the document.
const Format = "slipway-facts/1"

// Facts are what a node says about itself. What could not be read is zero.
type Facts struct {
	Format      string `json:"format"`
	Node        string `json:"node"` // host name
	Environment string `json:"environment,omitempty"`
	Cluster     string `json:"cluster,omitempty"`    // as the node's seed has it
	InstanceID  string `json:"instanceID,omitempty"` // of the seed

	MachineID string   `json:"machineID"`
	BootID    string   `json:"bootID"`
	HostKeys  []string `json:"hostKeys"` // authorized_keys form
	Initiator string   `json:"initiator,omitempty"`

	Image      Image          `json:"image"`
	Clock      Clock          `json:"clock"`
	Interfaces []Interface    `json:"interfaces"`
	Routes     []Route        `json:"routes"`
	Missing    []Missing      `json:"missing"` // of the baseline; empty when it holds
	Disks      []machine.Disk `json:"disks"`
	Data       []Mount        `json:"data"` // data disks that the node has taken
	K3s        K3s            `json:"k3s"`
}

// Image is what the node was started from.
type Image struct {
	Slot     string `json:"slot,omitempty"`
	RootHash string `json:"rootHash,omitempty"`
}

// Clock is the node's idea of time.
type Clock struct {
	Now          time.Time `json:"now"`          // when the document was made
	Synchronised bool      `json:"synchronised"` // the kernel says so (adjtimex(2))
	LocalRTC     bool      `json:"localRTC"`     // the hardware clock is in local time (hwclock(8), /etc/adjtime)
}

// Interface is a network card, or a VLAN of one.
type Interface struct {
	Name      string   `json:"name"`
	MAC       string   `json:"mac"` // lower case, colons
	VLAN      int      `json:"vlan,omitempty"`
	Up        bool     `json:"up"`
	Addresses []string `json:"addresses"` // with prefix length
}

// Route is an IPv4 route of the main table. The default route has the destination 0.0.0.0/0.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	Gateway     netip.Addr   `json:"gateway,omitzero"`
	Interface   string       `json:"interface"`
}

// Missing is a part of the baseline that does not hold.
type Missing struct {
	Item string `json:"item"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
}

// K3s is how far the node is in a cluster.
type K3s struct {
	Version string   `json:"version,omitempty"` // of the program; empty when there is none
	Config  bool     `json:"config"`            // config.yaml is there
	Init    bool     `json:"init"`              // it, or a drop-in, says cluster-init
	DropIns []string `json:"dropIns"`           // names of files in config.yaml.d

	Etcd     bool          `json:"etcd"`              // it holds the data of a member of etcd
	SQLite   bool          `json:"sqlite"`            // it holds a cluster of one server without etcd
	Member   string        `json:"member,omitempty"`  // its name in etcd
	CA       digest.Digest `json:"ca,omitzero"`       // of the certificate (DER) that signs the API servers': a cluster's identity
	TokenCA  string        `json:"tokenCA,omitempty"` // hex, how a token names the same; empty when a bundle makes that uncertain
	Joined   bool          `json:"joined"`            // a server has let it in as a node
	Password bool          `json:"password"`          // it has a node password

	Unit  string `json:"unit,omitempty"` // of systemd: k3s.service or k3s-agent.service
	State string `json:"state"`          // of the unit: active, activating, inactive, failed, …
}

// Knows reports whether the node holds anything of a cluster that has to be
// respected: a second one must never be started beside it.
func (k K3s) Knows() bool { return k.Etcd || k.SQLite || !k.CA.IsZero() }

// Running reports whether k3s runs, or is on its way.
func (k K3s) Running() bool { return k.State == "active" || k.Starting() }

// Starting reports whether k3s is on its way, for however long: it tries again and
// again until it can join.
func (k K3s) Starting() bool { return k.State == "activating" || k.State == "reloading" }

// Read reads the document as slipway-node facts prints it.
func Read(data []byte) (Facts, error) {
	var f Facts
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("reading the facts of a node: %w", err)
	}
	if f.Format != Format {
		return f, diag.WithHint(fmt.Errorf("the node tells its facts as %q, not as %q", f.Format, Format), "the node's image and this program are of different releases: use the ones of one build")
	}
	return f, nil
}

// ConfigInit reports whether k3s's configuration, config.yaml or a drop-in, says
// cluster-init in the form in which it is written: a key at the start of a line.
func ConfigInit(config []byte) bool {
	for line := range strings.Lines(string(config)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value, _, _ = strings.Cut(value, "#")
		if ok && strings.Trim(key, `"'`) == "cluster-init" && isTrue(strings.Trim(strings.TrimSpace(value), `"'`)) {
			return true
		}
	}
	return false
}

func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "y", "1", "t":
		return true
	}
	return false
}

// errNone says that an address is on no interface.
var errNone = errors.New("no interface has it")

// On returns the interface that has an address.
func (f Facts) On(a netip.Addr) (Interface, error) {
	for _, i := range f.Interfaces {
		for _, text := range i.Addresses {
			if p, err := netip.ParsePrefix(text); err == nil && p.Addr() == a {
				return i, nil
			}
		}
	}
	return Interface{}, errNone
}
