package boot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootentry"
)

// badEntry is a second boot entry for slot B: like slot A's, but newer, so that
// the loader takes it first, and with a short patience and both serial ports as consoles.
func badEntry(slotA string) string {
	b := strings.NewReplacer("slipway.slot=a", "slipway.slot=b").Replace(slotA)
	lines := strings.Split(b, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "version"):
			lines[i] = "version 999"
		case strings.HasPrefix(line, "options"):
			lines[i] = line + " slipway.reboot=2 console=ttyS1,115200 console=ttyS0,115200"
		}
	}
	return strings.Join(lines, "\n")
}

// checkFallback gives the node a slot B that is like A but for a few bytes, and an
// entry that is preferred. The node must say what is wrong, on every console,
// and be back on A by itself when B's tries are used up.
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
	n.Serial[1].Mark()
	n.try("sudo systemctl reboot")
	for range bootentry.Tries {
		for i, c := range n.Serial {
			got, err := c.Expect(t.Context(), `cannot start from slot b\.\n(?:.*\n)*? +error: +([^\n]*slot[^\n]*)\n`, bootLimit)
			if err != nil {
				t.Fatalf("console %d does not say in words that slot B is bad: %v", i, err)
			}
			t.Logf("console %d: %s", i, got[1])
			if _, err := c.Expect(t.Context(), `Type a number and press Enter:\n(?: +[0-9] +[^\n]+\n)+(?:[^\n]*\n)*?restarting in [0-9]+ s`, stepLimit); err != nil {
				t.Fatalf("console %d shows no menu: %v", i, err)
			}
		}
		// The next try begins with the loader; without this one menu could count twice.
		if _, err := n.Serial[0].Expect(t.Context(), `BdsDxe: starting`, stepLimit); err != nil {
			t.Fatal(err)
		}
		n.Serial[1].Mark()
	}
	n.login(t)
	if got := n.run(t, "cat /proc/cmdline"); !strings.Contains(got, "slipway.slot=a") {
		t.Errorf("the node came up on another slot than A: %s", got)
	}
	used := fmt.Sprintf("slot-b+0-%d.conf", bootentry.Tries)
	if got := n.run(t, "sudo ls /efi/loader/entries"); !strings.Contains(got, used) || !strings.Contains(got, "slot-a.conf") {
		t.Errorf("boot entries %q, want slot-a.conf and %s", got, used)
	}
}
