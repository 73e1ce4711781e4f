package installer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

// action is how an installer ends.
type action int

const (
	restart action = iota
	powerOff
	again     // ask again after the wait
	takeStick // restart when the stick is out
)

// ending is what happens now, after a wait in which a person can step in.
type ending struct {
	action action
	wait   time.Duration
	lines  []string
}

// Waits before an ending. Short where all is well, long enough to read otherwise.
const (
	waitGood = 5 * time.Second
	waitBad  = 60 * time.Second
	waitLost = 5 * time.Minute
)

// Bounds of what pxed may ask for between two reports.
const (
	leastAgain, mostAgain = 5 * time.Second, 5 * time.Minute
)

// failed ends a run that came to nothing before anybody was asked. After a restart
// the firmware asks pxed again, which counts how often it starts an installer.
func failed(err error) ending {
	lines := []string{"nothing was written: " + err.Error()}
	if hint := diag.HintOf(err); hint != "" {
		lines = append(lines, "hint: "+hint)
	}
	return ending{restart, waitBad, lines}
}

// endingOf decides how to end. A machine restarts when the other side knows how it
// went and will not start the installer again for the same reason; when it does
// not know, a machine that boots from the network first would be imaged in a loop,
// so it is switched off.
func endingOf(r install.Result, stick bool) ending {
	lines := r.Summary()
	switch {
	case r.Err == nil && r.Receipt.Ticket == "":
		return obey(r.Reply)
	case errors.Is(r.Err, install.ErrTicket) && !r.Receipt.Written && !stick:
		return ending{restart, waitBad, append(lines, "the machine restarts, and its disk is started if the server says so")}
	case errors.Is(r.Err, install.ErrTicket) && r.Receipt.Ticket == "" && stick:
		// The stick has done its work here, so that the machine has a disk to start.
		return ending{takeStick, waitLost, lines}
	case !r.Acknowledged:
		return ending{powerOff, waitLost, append(lines, "the machine is switched off, so that it is not started into the installer over and over")}
	case r.Err == nil && stick:
		return ending{takeStick, waitLost, lines}
	case stick:
		return ending{powerOff, waitLost, lines}
	case r.Err == nil:
		return ending{restart, waitGood, lines}
	default:
		return ending{restart, waitBad, lines}
	}
}

// obey does what the other side said to a machine that is not to be installed.
func obey(reply machine.Reply) ending {
	switch reply.Action {
	case machine.ActionWait:
		after := time.Duration(reply.After) * time.Second
		return ending{action: again, wait: min(max(after, leastAgain), mostAgain)}
	case machine.ActionPowerOff:
		return ending{powerOff, waitGood, nil}
	default:
		// For boot-disk, and for an install that this start has no ticket for.
		return ending{restart, waitGood, nil}
	}
}

// end carries an ending out. It returns when a person wants another try.
func (a *app) end(e ending) {
	if len(e.lines) > 0 {
		rule := strings.Repeat("-", 72)
		a.screen.Say(strings.Join(append(append([]string{rule}, e.lines...), rule), "\n"))
	}
	if e.action == takeStick {
		e.action = a.awaitStick(e.wait)
	} else if !a.countdown(e) {
		return
	}
	unix.Sync()
	request := unix.LINUX_REBOOT_CMD_RESTART
	if e.action == powerOff {
		request = unix.LINUX_REBOOT_CMD_POWER_OFF
	}
	if err := unix.Reboot(request); err != nil {
		a.screen.Say(fmt.Sprintf("the kernel does not restart: %v", err))
		time.Sleep(waitBad)
	}
}

// countdown waits for a person. It reports false when another try is wanted.
func (a *app) countdown(e ending) bool {
	what := "restarting"
	if e.action == powerOff {
		what = "switching off"
	}
	for left := e.wait; left > 0; left -= min(left, 10*time.Second) {
		a.consoles.Tell(fmt.Sprintf("%s in %d s (Enter: now, r and Enter: try again)\n", what, left/time.Second))
		in, typed := a.consoles.Ask(min(left, 10*time.Second))
		if typed {
			return in.Text != "r"
		}
	}
	a.screen.Say(what)
	return true
}
