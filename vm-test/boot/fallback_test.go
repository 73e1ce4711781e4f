package boot

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootentry"
	"github.com/slipway/slipway/vm-test/qemu"
)

// badEntry is a second boot entry for slot B: like slot A's, but newer, so that
// the loader takes it first, and with a short patience.
func badEntry(slotA string) string {
	b := strings.NewReplacer("slipway.slot=a", "slipway.slot=b").Replace(slotA)
	lines := strings.Split(b, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "version"):
			lines[i] = "version    99991231.235959"
		case strings.HasPrefix(line, "options"):
			lines[i] = line + " slipway.reboot=5"
		}
	}
	return strings.Join(lines, "\n")
}

// checkFallback gives the node a slot B that is like A but for a few bytes, and an
// entry that is preferred. The node must say what is wrong, on every console,
// and be back on A by itself when B's tries are used up. In the first try somebody
// is there and looks around.
func checkFallback(t *testing.T, n *machine) {
	n.run(t, fmt.Sprintf(`sudo sh -ec '
		dd if=/dev/disk/by-partlabel/slipway-a of=/dev/disk/by-partlabel/slipway-b bs=4M status=none
		printf "this is not what was built" | dd of=/dev/disk/by-partlabel/slipway-b bs=1 seek=%d conv=notrunc status=none
		sync'`, n.lab.index.Slot.Squashfs/2))
	entry := badEntry(n.run(t, "sudo cat /efi/loader/entries/slot-a.conf"))
	path := fmt.Sprintf("/efi/loader/entries/slot-b+%d.conf", bootentry.Tries)
	if err := n.shell.Put(t.Context(), path, []byte(entry)); err != nil {
		t.Fatal(err)
	}
	n.run(t, "sudo sync")
	n.Serial[0].Mark()
	n.try("sudo systemctl reboot")
	n.expectTrouble(t)
	n.lookAround(t)
	// How often B was tried is for the loader's counter to say. A console that is read
	// while a busy host emulates it may miss words; all that it must have is the
	// complaint of more than the try in which somebody looked around.
	n.login(t)
	if got := n.run(t, "cat /proc/cmdline"); !strings.Contains(got, "slipway.slot=a") {
		t.Errorf("the node came up on another slot than A: %s", got)
	}
	used := fmt.Sprintf("slot-b+0-%d.conf", bootentry.Tries)
	if got := n.run(t, "sudo ls /efi/loader/entries"); !strings.Contains(got, used) || !strings.Contains(got, "slot-a.conf") {
		t.Errorf("boot entries %q, want slot-a.conf and %s", got, used)
	}
	if later := n.Serial[0].Since(); !regexp.MustCompile(qemu.Like("cannot start from slot b.")).MatchString(later) {
		t.Errorf("no complaint about slot B after the first try:\n%s", later)
	}
}

// expect waits for words on the first console.
func (m *machine) expect(t *testing.T, re string) []string {
	t.Helper()
	got, err := m.Serial[0].Expect(t.Context(), re, bootLimit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// expectTrouble waits for what a node says and offers when its slot is bad.
func (m *machine) expectTrouble(t *testing.T) {
	t.Helper()
	t.Log(m.expect(t, qemu.Like("cannot start from slot b.")+`\n(?:.*\n)*? +`+qemu.Like("error:")+` +([^\n]*`+qemu.Like("slot")+`[^\n]*)\n`)[1])
	m.expect(t, qemu.Like("Type a number and press Enter:"))
	for _, offer := range []string{"try again", "restart with the other slot", "shell", "restart"} {
		m.expect(t, ` [0-9]+ +`+qemu.Like(offer))
	}
	m.expect(t, qemu.Like("restarting in ")+`[0-9]+`)
}

// lookAround takes the shell, and looks from there at the other console: tty0,
// the screen, of which the kernel keeps the text even without a graphics card.
func (m *machine) lookAround(t *testing.T) {
	t.Helper()
	for _, step := range []struct{ line, answer string }{
		{"3", qemu.Like("slipway rescue") + `[#>]+ `},
		{"cat /dev/vcs1", qemu.Like("this node cannot start from slot b")},
		{"exit", qemu.Like("Type a number and press Enter:")},
		{"4", qemu.Like("restarting")},
	} {
		if err := m.Serial[0].Type(step.line); err != nil {
			t.Fatal(err)
		}
		m.expect(t, step.answer)
	}
}
