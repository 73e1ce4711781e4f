package boot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// identity is what no two nodes may share.
type identity struct {
	MachineID, HostKey, Initiator, StateUUID string
}

func (m *machine) identity(t *testing.T) identity {
	t.Helper()
	return identity{
		MachineID: strings.TrimSpace(m.run(t, "cat /etc/machine-id")),
		HostKey:   m.shell.HostKey,
		Initiator: strings.TrimSpace(m.run(t, "sudo grep ^InitiatorName= /etc/iscsi/initiatorname.iscsi")),
		StateUUID: m.mount(t, "/var", "UUID"),
	}
}

func (id identity) fields() map[string]string {
	return map[string]string{"machine id": id.MachineID, "host key": id.HostKey,
		"iSCSI initiator": id.Initiator, "UUID of the state file system": id.StateUUID}
}

// checkIdentity compares two nodes of the same image and switches the second off.
func checkIdentity(t *testing.T, n, twin *machine) identity {
	twin.login(t)
	mine, other := n.identity(t), twin.identity(t)
	for what, value := range mine.fields() {
		if value == "" {
			t.Errorf("the node has no %s", what)
		}
		if value == other.fields()[what] {
			t.Errorf("two nodes have the same %s: %s", what, value)
		}
	}
	if err := twin.PullPlug(t.Context()); err != nil {
		t.Error(err)
	}
	return mine
}

// plants are the files that a restart must keep, and those that it must lose.
func plants() (kept, lost []string) {
	return []string{"/var/lib/foo/kept", "/home/slip/kept", "/root/kept", "/opt/kept", "/etc/rancher/kept", "/etc/slipway/kept"},
		[]string{"/etc/lost", "/etc/systemd/system/lost.service", "/tmp/lost", "/run/lost"}
}

// checkReboot plants files, restarts the node and looks what is left of them.
func checkReboot(t *testing.T, n *machine, want identity, how func(*testing.T, *machine)) {
	kept, lost := plants()
	hosts := n.run(t, "cat /etc/hosts")
	before := n.bootID(t)
	n.run(t, fmt.Sprintf(`sudo sh -ec 'mkdir -p /var/lib/foo; for f in %s; do echo %s >$f; done; echo 192.0.2.1 drift >>/etc/hosts; sync'`,
		strings.Join(slices.Concat(kept, lost), " "), strings.TrimSpace(before)))
	n.restart(t, how)
	if got := n.identity(t); got != want {
		t.Errorf("identity changed: %+v, was %+v", got, want)
	}
	for _, path := range kept {
		if got := n.try("sudo cat " + path); got != before {
			t.Errorf("%s is %q after the restart, want %q", path, got, before)
		}
	}
	for _, path := range lost {
		if got := n.try("sudo test -e " + path + " || echo gone"); got != "gone\n" {
			t.Errorf("%s outlived the restart", path)
		}
	}
	if got := n.run(t, "cat /etc/hosts"); got != hosts {
		t.Errorf("/etc/hosts is not made anew:\n%s\nwas:\n%s", got, hosts)
	}
	last := strings.ReplaceAll(strings.TrimSpace(before), "-", "")
	if got := n.run(t, "sudo journalctl --list-boots -o json | grep -c "+last+" || true"); strings.TrimSpace(got) == "0" {
		t.Error("the journal of the boot before is gone")
	}
	if got := n.run(t, "sudo journalctl -b "+last+" -n 1 -o cat"); strings.TrimSpace(got) == "" {
		t.Error("the journal of the boot before is empty")
	}
	checkBlessed(t, n)
	checkHealth(t, n)
	if got := n.try("cloud-init status --format json"); !cloudInitDone(t, got) {
		t.Errorf("cloud-init has something to say: %s", got)
	}
}
