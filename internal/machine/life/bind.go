package life

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

// Bind finds the node of the cluster that a machine is, by the MAC address of any
// of its network interfaces or by its SMBIOS serial number. It gives the node's
// name and the reason, "" and the reason when no node fits, or a Refusal when
// what the machine says points to several.
func Bind(nodes []cluster.Node, r Record) (node, why string, err error) {
	byMAC, bySerial := nodesByMAC(nodes, r.MACs), nodesBySerial(nodes, r.Identity.Serial)
	fix := "correct the MAC addresses and serial numbers of the nodes in the profile"
	switch {
	case len(byMAC) > 1:
		return "", "", machine.Refuse(machine.CodeAmbiguous, fix, "its MAC addresses %s belong to several nodes: %s", join(r.MACs), names(byMAC))
	case len(bySerial) > 1:
		return "", "", machine.Refuse(machine.CodeAmbiguous, fix, "its serial number %s is that of several nodes: %s", r.Identity.Serial, names(bySerial))
	case len(byMAC) == 1 && len(bySerial) == 1 && byMAC[0].Name != bySerial[0].Name:
		return "", "", machine.Refuse(machine.CodeAmbiguous, fix, "its MAC address says %s, its serial number %s says %s", byMAC[0].Name, r.Identity.Serial, bySerial[0].Name)
	case len(byMAC) == 1:
		return bindByMAC(byMAC[0], r, fix)
	case len(bySerial) == 1 && r.Complete:
		return "", "", machine.Refuse(machine.CodeAmbiguous, fix, "its serial number says %s, but it has none of that node's MAC addresses, only %s: the node would have no network", bySerial[0].Name, join(r.MACs))
	case len(bySerial) == 1:
		return bySerial[0].Name, "serial number " + r.Identity.Serial, nil
	}
	return "", notBound(r), nil
}

func bindByMAC(n cluster.Node, r Record, fix string) (string, string, error) {
	want, have := machine.Usable(n.Serial), machine.Usable(r.Identity.Serial)
	if want != "" && have != "" && want != have {
		return "", "", machine.Refuse(machine.CodeAmbiguous, fix, "its MAC address says %s, but its serial number is %s and the profile wants %s", n.Name, r.Identity.Serial, n.Serial)
	}
	why := "MAC address " + string(n.Interfaces[slices.IndexFunc(n.Interfaces, func(i cluster.Interface) bool { return slices.Contains(r.MACs, i.MAC) })].MAC)
	if want != "" && have != "" {
		why += " and serial number " + r.Identity.Serial
	}
	return n.Name, why, nil
}

func notBound(r Record) string {
	why := "no node of the profile has MAC address " + join(r.MACs)
	if machine.Usable(r.Identity.Serial) != "" {
		return why + " or serial number " + r.Identity.Serial
	}
	return why + ", and its serial number identifies nothing: " + machine.Junk(r.Identity.Serial)
}

func nodesByMAC(nodes []cluster.Node, macs []cluster.MAC) []cluster.Node {
	return matching(nodes, func(n cluster.Node) bool {
		return slices.ContainsFunc(n.Interfaces, func(i cluster.Interface) bool { return slices.Contains(macs, i.MAC) })
	})
}

func nodesBySerial(nodes []cluster.Node, serial string) []cluster.Node {
	have := machine.Usable(serial)
	return matching(nodes, func(n cluster.Node) bool { return have != "" && machine.Usable(n.Serial) == have })
}

func matching(nodes []cluster.Node, ok func(cluster.Node) bool) []cluster.Node {
	var out []cluster.Node
	for _, n := range nodes {
		if ok(n) {
			out = append(out, n)
		}
	}
	return out
}

func names(nodes []cluster.Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return strings.Join(out, ", ")
}

func join(macs []cluster.MAC) string {
	var out []string
	for _, m := range macs {
		out = append(out, string(m))
	}
	return strings.Join(out, ", ")
}

// Expect makes the record of a node's machine that nobody has seen yet, so that it
// can be armed before it is switched on.
func Expect(n cluster.Node) (Record, error) {
	r := Record{State: StateBound, Node: n.Name, Why: "expected by the profile, not seen yet"}
	for _, i := range n.Interfaces {
		r.MACs = append(r.MACs, i.MAC)
	}
	if len(r.MACs) == 0 {
		return Record{}, fmt.Errorf("node %s has no network interface in the profile", n.Name)
	}
	r.Key = machine.Keys(r.MACs, r.Identity)[0]
	return r, nil
}
