package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
)

// Machine says which machine is a node: one with any of the addresses, or with the
// serial number. With Any it is also one that no node of the stick names.
type Machine struct {
	MACs   []string `json:"macs,omitempty"`
	Serial string   `json:"serial,omitempty"`
	Any    bool     `json:"any,omitempty"`
}

// entry is a node as the stick knows it.
type entry struct {
	Machine
	name     string
	installs bool // it has a ticket
}

func (s *Source) entries() ([]entry, error) {
	dirs, err := fs.ReadDir(s.root.FS(), nodesDir)
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	var out []entry
	for _, d := range dirs {
		e := entry{name: d.Name()}
		if err := s.read(path.Join(nodesDir, e.name, machineFile), &e.Machine); err != nil {
			return nil, err
		}
		_, err := s.root.Stat(path.Join(nodesDir, e.name, ticketFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		e.installs = err == nil
		out = append(out, e)
	}
	return out, nil
}

// find finds the node that a machine becomes, and says why it is that one.
func (s *Source) find(r machine.Report) (node, message string, err error) {
	all, err := s.entries()
	if err != nil {
		return "", "", err
	}
	fit := names(all, func(e entry) bool { return e.is(r) })
	installs := names(all, func(e entry) bool { return e.installs })
	here := names(all, func(e entry) bool { return e.installs && e.is(r) })
	either := names(all, func(e entry) bool { return e.installs && e.Any })
	me := "this machine has " + strings.Join(identities(r), ", ")
	switch {
	case len(fit) > 1:
		return "", "", fmt.Errorf("the stick has machines for %s, and all fit this one; %s", strings.Join(fit, " and "), me)
	case len(here) == 1:
		return here[0], "this stick has an install for node " + here[0], nil
	case len(fit) == 1:
		return "", "", diag.WithHint(fmt.Errorf("this machine is node %s, and the stick installs only %s; %s", fit[0], strings.Join(installs, ", "), me),
			"write a stick for it: imagebuild usb --install --node "+fit[0])
	case len(either) == 1:
		return either[0], fmt.Sprintf("this stick installs node %s; %s, which no node of the profile names: the seed sets the network up by address, and may find none", either[0], me), nil
	}
	return "", "", diag.WithHint(fmt.Errorf("the stick has nothing for this machine, only for %s; %s", strings.Join(installs, ", "), me),
		"enter its address in the profile and write the stick again")
}

func names(all []entry, want func(entry) bool) []string {
	var out []string
	for _, e := range all {
		if want(e) {
			out = append(out, e.name)
		}
	}
	return out
}

// is reports whether a machine is the one that is meant. Serial numbers that
// vendors left empty or equal on all boards identify nothing.
func (m Machine) is(r machine.Report) bool {
	if m.Serial != "" && machine.Junk(m.Serial) == "" && strings.EqualFold(m.Serial, r.Identity.Serial) {
		return true
	}
	for _, n := range r.NICs {
		for _, mac := range m.MACs {
			if strings.EqualFold(n.MAC, mac) {
				return true
			}
		}
	}
	return false
}

// identities are what a machine can be recognised by.
func identities(r machine.Report) []string {
	var out []string
	for _, n := range r.NICs {
		out = append(out, n.MAC)
	}
	if r.Identity.Serial != "" {
		out = append(out, fmt.Sprintf("serial number %q", r.Identity.Serial))
	}
	if len(out) == 0 {
		out = append(out, "no address and no serial number")
	}
	return out
}
