package installer

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/slipway/slipway/internal/artifact/gpt"
	"github.com/slipway/slipway/internal/node/bootnext"
	"github.com/slipway/slipway/internal/node/efivar"
	"github.com/slipway/slipway/internal/node/inventory"
)

// waitStick is how long the stick may stay in a machine that can start its disk
// all the same.
const waitStick = 30 * time.Second

// awaitStick waits until the stick was taken out, and says how the machine goes on.
// A stick that stays would be started again, and would only say once more that it
// has done its work: the firmware is told to start the disk instead. Where it cannot
// be told, the machine is switched off.
func (a *app) awaitStick(patience time.Duration) action {
	firmware := bootnext.Firmware{Dir: efivar.Dir, Partitions: a.partitions()}
	disk, why := firmware.Disk()
	if why == nil {
		patience = waitStick
		a.screen.Say(fmt.Sprintf("take out the stick; after %s the machine starts %q with the stick in it, too", patience, disk))
	} else {
		a.consoles.Log("no boot option for a disk: %v", why)
		a.screen.Say(fmt.Sprintf("take out the stick: the machine then restarts from its disk; after %s it is switched off", patience))
	}
	if a.stickGone(patience) {
		a.screen.Say("restarting")
		return restart
	}
	if why == nil {
		err := firmware.Set()
		if err == nil {
			a.screen.Say("restarting from the disk")
			return restart
		}
		a.screen.Say(err.Error())
	}
	a.screen.Say("the stick was not taken out, switching off")
	return powerOff
}

// partitions are the GUIDs of the partitions of all disks but the stick.
func (a *app) partitions() []string {
	var out []string
	for _, d := range inventory.Disks(os.DirFS("/sys")) {
		if d.Name == a.stick {
			continue
		}
		f, err := os.Open("/dev/" + d.Name)
		if err != nil {
			continue
		}
		if t, err := gpt.Read(f, d.Sector, 1); err == nil {
			for _, p := range t.Partitions {
				out = append(out, p.GUID)
			}
		}
		f.Close()
	}
	return out
}

// stickGone waits until the stick was taken out, and reports whether it was.
func (a *app) stickGone(wait time.Duration) bool {
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		if _, err := os.Stat("/sys/block/" + a.stick); errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}
