package boot

import (
	"strings"
	"testing"

	"github.com/slipway/slipway/vm-test/qemu"
)

// TestNode is the life of one node, in order, with a second one beside it for
// comparison. Each part leaves the machine as the next one expects it.
func TestNode(t *testing.T) {
	l := open(t)
	n := l.install(t, "n1")
	var twin *machine
	var first identity
	story := []struct {
		name string
		do   func(*testing.T)
	}{
		{"first boot", func(t *testing.T) { n.login(t) }},
		{"another node starts", func(*testing.T) { twin = l.install(t, "twin") }},
		{"baseline holds", func(t *testing.T) { checkBaseline(t, n) }},
		{"root is read-only and verified", func(t *testing.T) { checkRoot(t, n) }},
		{"state fills the grown disk", func(t *testing.T) { checkState(t, n) }},
		{"seeds are what cloud-init expects", func(t *testing.T) { checkSeed(t, n) }},
		{"slot is blessed", func(t *testing.T) { checkBlessed(t, n) }},
		{"nothing failed or waited", func(t *testing.T) { checkHealth(t, n) }},
		{"identity is its own", func(t *testing.T) { first = checkIdentity(t, n, twin) }},
		{"second boot, after a reboot", func(t *testing.T) { checkReboot(t, n, first, reboot) }},
		{"third boot, after a reset", func(t *testing.T) { checkReboot(t, n, first, pressReset) }},
		{"bad slot B gives way to A", func(t *testing.T) { checkFallback(t, n) }},
		{"foreign readers find nothing", func(t *testing.T) { checkDisk(t, n) }},
	}
	for _, part := range story {
		if !t.Run(part.name, part.do) {
			t.Fatalf("stopped after %q: what follows builds on it", part.name)
		}
	}
}

// reboot restarts the node as its operator does.
func reboot(t *testing.T, n *machine) {
	t.Helper()
	n.try("sudo systemctl reboot") // the connection may go before the answer
}

// pressReset restarts the node without warning: what was not written is gone.
func pressReset(t *testing.T, n *machine) {
	t.Helper()
	if err := n.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// restart goes through a restart and fails unless it was one.
func (m *machine) restart(t *testing.T, how func(*testing.T, *machine)) {
	t.Helper()
	before := m.bootID(t)
	m.Serial[0].Mark()
	how(t, m)
	// The loader or the kernel must have spoken again before a login counts: an
	// old sshd answers until it is stopped.
	if _, err := m.Serial[0].Expect(t.Context(), qemu.Like("Linux version")+"|"+qemu.Like("BdsDxe: starting"), bootLimit); err != nil {
		t.Fatal(err)
	}
	m.login(t)
	if after := m.bootID(t); after == before {
		t.Fatal("the node has not restarted")
	}
}

func (m *machine) bootID(t *testing.T) string {
	t.Helper()
	return m.run(t, "cat /proc/sys/kernel/random/boot_id")
}

// checkBlessed waits for the boot to be called good: the counter goes from the
// name of the slot's entry.
func checkBlessed(t *testing.T, n *machine) {
	if err := n.until(t.Context(), "sudo test -e /efi/loader/entries/slot-a.conf", stepLimit); err != nil {
		t.Fatalf("%v\n%s", err, n.try("sudo ls /efi/loader/entries; systemctl status systemd-bless-boot boot-complete.target"))
	}
	if got := strings.Fields(n.run(t, "sudo ls /efi/loader/entries")); len(got) != 1 || got[0] != "slot-a.conf" {
		t.Errorf("boot entries %q, want slot-a.conf alone", got)
	}
}

// checkHealth looks for units that failed, and notes where the time went.
func checkHealth(t *testing.T, n *machine) {
	if failed := n.run(t, "systemctl list-units --failed --plain --no-legend"); failed != "" {
		t.Errorf("failed units:\n%s", failed)
	}
	if got := strings.TrimSpace(n.try("systemctl is-system-running")); got != "running" {
		t.Errorf("systemd calls the node %q", got)
	}
	t.Logf("%s%s%s", n.run(t, "systemd-analyze"), n.run(t, "systemd-analyze blame | head -5"), n.run(t, "free -m"))
}

// checkDisk switches the node off as the power button does, and has the disk
// read by programs that did not write it.
func checkDisk(t *testing.T, n *machine) {
	if err := n.PressPower(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Wait(t.Context(), stepLimit); err != nil {
		t.Fatal(err)
	}
	tool(t, "qemu-img", "check", "-q", n.disk.Path)
	raw := n.disk.Path + ".raw"
	if err := qemu.Flatten(t.Context(), n.disk, raw); err != nil {
		t.Fatal(err)
	}
	checkTable(t, raw)
}
