// Package ready decides whether a node holds its baseline, and says for everything
// that is missing what it is and what to do. Looking (Observe) and judging (Check)
// are apart.
package ready

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/baseline"
)

// Missing is one thing that does not hold.
type Missing struct {
	Item string `json:"item"` // what kind of thing
	What string `json:"what"` // one sentence, without a period
	Hint string `json:"hint"` // what to do
}

// Observed is what a node looks like.
type Observed struct {
	Baseline    *baseline.Baseline // nil when the seed brought none
	BaselineErr string             // why it could not be read, "" when it is only absent
	Hostname    string
	Interfaces  []Interface
	Users       map[string]bool
	Modules     map[string]bool
	Sysctls     map[string]string
	Units       map[string]string // ActiveState
	Commands    map[string]bool
	MachineID   string // /etc/machine-id
	PersistedID string // the one on state
	RootFS      string // type of the file system at /
	RootRO      bool
	State       State
	CloudInit   CloudInit
}

// Interface is a network interface of the node.
type Interface struct {
	Name      string
	MAC       string // lower case, colons
	VLAN      int
	Up        bool
	Addresses []string // with prefix length
	Global    bool     // has an address that is not link-local
}

// State is the writable file system.
type State struct {
	OnVar         bool  // /var lies on it
	Size          int64 // of the file system, bytes
	PartitionSize int64 // bytes
	FreeAfter     int64 // unused bytes between the partition and what follows it on the disk
}

// CloudInit is how cloud-init got on.
type CloudInit struct {
	Finished   bool
	DataSource string
	Errors     []string
	Warnings   []string
}

// Check returns what is missing; nothing means that the node is ready.
func Check(o Observed) []Missing {
	var m findings
	m.cloudInit(o.CloudInit)
	m.system(o)
	m.state(o.State)
	if o.Baseline == nil {
		m.noBaseline(o)
		return m.list
	}
	b := *o.Baseline
	if b.Format != baseline.Format {
		m.add("baseline", "the baseline has the format %q, this image reads %q", b.Format, baseline.Format)("build seed and image with the same release")
		return m.list
	}
	m.host(b, o)
	for _, want := range b.Interfaces {
		m.network(want, o.Interfaces)
	}
	m.names(b, o)
	m.sysctls(b, o)
	return m.list
}

type findings struct{ list []Missing }

// add notes something missing; the returned function takes what to do about it.
func (m *findings) add(item, format string, args ...any) func(hint string, args ...any) {
	m.list = append(m.list, Missing{Item: item, What: fmt.Sprintf(format, args...)})
	at := &m.list[len(m.list)-1]
	return func(hint string, args ...any) { at.Hint = fmt.Sprintf(hint, args...) }
}

func (m *findings) noBaseline(o Observed) {
	if o.BaselineErr != "" {
		m.add("baseline", "the baseline %s cannot be read: %s", baseline.Path, o.BaselineErr)("write the seed again")
		return
	}
	m.add("baseline", "the seed brought no baseline (%s)", baseline.Path)(
		"is there a seed? write this node's seed to the CIDATA partition, or attach it as a medium labelled CIDATA")
}

func (m *findings) cloudInit(c CloudInit) {
	if !c.Finished {
		m.add("cloud-init", "cloud-init has not finished")("wait, or see: cloud-init status --long")
	}
	for _, e := range c.Errors {
		m.add("cloud-init", "cloud-init reports an error: %s", e)("see /var/log/cloud-init.log; the seed is checked with: cloud-init schema --system")
	}
	if c.Finished && strings.Contains(c.DataSource, "DataSourceNone") {
		m.add("seed", "cloud-init found no seed")("write this node's seed to the CIDATA partition, or attach it as a medium labelled CIDATA")
	}
}

func (m *findings) system(o Observed) {
	if o.RootFS != "squashfs" || !o.RootRO {
		m.add("root", "/ is not the read-only slot (file system %s, read-only: %v)", o.RootFS, o.RootRO)("this image was not started by nodeinit: write the image again")
	}
	switch {
	case len(o.MachineID) != 32 || strings.Trim(o.MachineID, "0123456789abcdef") != "":
		m.add("identity", "/etc/machine-id is %q, not an identity", o.MachineID)("restart the node; nodeinit makes a new one")
	case o.MachineID != o.PersistedID:
		m.add("identity", "/etc/machine-id (%s) is not the one on state (%q), so it will not persist", o.MachineID, o.PersistedID)("restart the node; nothing but nodeinit may write it")
	}
}

// slack is what the alignment of partitions and ext4's block groups may leave unused, in bytes.
const slack = 4 << 20

func (m *findings) state(s State) {
	if !s.OnVar {
		m.add("state", "/var does not lie on the state file system")("restart the node and watch its console")
		return
	}
	if s.FreeAfter > slack {
		m.add("state", "%d MiB of the disk behind the state partition are unused", s.FreeAfter>>20)("restart the node: nodeinit grows the partition")
	}
	// ext4 keeps a few percent for its own tables.
	if s.PartitionSize-s.Size > s.PartitionSize/10+128<<20 {
		m.add("state", "the state file system has %d MiB, its partition %d MiB", s.Size>>20, s.PartitionSize>>20)("restart the node: nodeinit grows the file system")
	}
}

func (m *findings) host(b baseline.Baseline, o Observed) {
	if o.Hostname != b.Node {
		m.add("host name", "the host name is %q, it must be %q", o.Hostname, b.Node)("see /var/log/cloud-init.log for set_hostname")
	}
}

func (m *findings) network(want baseline.Interface, have []Interface) {
	name := want.MAC
	if want.VLAN != 0 {
		name = fmt.Sprintf("%s VLAN %d", want.MAC, want.VLAN)
	}
	i := slices.IndexFunc(have, func(h Interface) bool { return strings.EqualFold(h.MAC, want.MAC) && h.VLAN == want.VLAN })
	if i < 0 {
		m.add("network", "there is no interface %s", name)("this machine has: %s; correct the MAC in the profile, or its driver is missing", macs(have))
		return
	}
	h := have[i]
	if !h.Up {
		m.add("network", "interface %s (%s) has no link", name, h.Name)("plug in the cable, check the switch port")
		return
	}
	if want.DHCP && !h.Global {
		m.add("network", "interface %s (%s) got no address from DHCP", name, h.Name)("is there a DHCP server in its network? see: networkctl status %s", h.Name)
	}
	for _, a := range want.Addresses {
		if !slices.Contains(h.Addresses, a) {
			m.add("network", "interface %s (%s) has not the address %s", name, h.Name, a)("see: networkctl status %s; a duplicate address is in the journal of systemd-networkd", h.Name)
		}
	}
}

func macs(have []Interface) string {
	var list []string
	for _, h := range have {
		if h.MAC != "" && h.VLAN == 0 {
			list = append(list, h.Name+" "+h.MAC)
		}
	}
	if len(list) == 0 {
		return "no network interface"
	}
	return strings.Join(list, ", ")
}

func (m *findings) names(b baseline.Baseline, o Observed) {
	for _, u := range b.Users {
		if !o.Users[u] {
			m.add("user", "there is no user %s", u)("see /var/log/cloud-init.log for users_groups")
		}
	}
	for _, name := range b.Modules {
		if !o.Modules[name] {
			m.add("module", "kernel module %s is neither loaded nor built in", name)("try: modprobe %s; the cloud kernel lacks drivers that the metal one has", name)
		}
	}
	for _, u := range b.Units {
		if s := o.Units[u]; s != "active" {
			m.add("unit", "%s is %s, it must be active", u, orUnknown(s))("see: systemctl status %s", u)
		}
	}
	for _, c := range b.Commands {
		if !o.Commands[c] {
			m.add("command", "the program %s is not installed", c)("add its package to the profile and build the image again")
		}
	}
}

func (m *findings) sysctls(b baseline.Baseline, o Observed) {
	for _, key := range slices.Sorted(maps.Keys(b.Sysctls)) {
		want, have := b.Sysctls[key], o.Sysctls[key]
		if strings.Join(strings.Fields(want), " ") == strings.Join(strings.Fields(have), " ") {
			continue
		}
		if have == "" {
			m.add("sysctl", "the kernel has no setting %s", key)("it appears with its kernel module; is that loaded?")
			continue
		}
		m.add("sysctl", "%s is %s, it must be %s", key, have, want)("something changed it after the boot; try: sysctl %s=%s", key, want)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
