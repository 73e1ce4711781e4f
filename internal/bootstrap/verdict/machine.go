package verdict

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Order is how a machine is imaged.
type Order struct {
	ID        string           // of the arming
	Valid     time.Duration    // how long the machine may take to come
	Overwrite []string         // serials or WWNs of disks whose foreign content may be destroyed
	Sanitize  machine.Sanitize // of the system disk
	Data      cluster.Policy   // of all data disks, in place of the profile's; may be empty
}

// Machine is the machine of a node as pxed sees it.
type Machine struct {
	State     life.State
	Arming    string    // ID of its last arming
	Live      bool      // that arming can still lead to an install
	End       life.End  // how it ended
	Installed time.Time // when the receipt of what is on its disk came
	Ready     time.Time // when that system reached its baseline first
	Refused   string    // why it may not be imaged, whatever its state
	Why, Hint string    // of a failure
	Said      string    // how far an install is, or what pxed refused it last
}

// Ours reports whether an arming belongs to a run. Armings of a run are named after it
// and counted: one that failed is over, and the same name would arm nothing.
func Ours(arming, run string) bool { return run != "" && strings.HasPrefix(arming, run+".") }

// Done reports whether the machine was installed since a time, by pxed's clock. Who
// armed it does not matter: an operator who helps by hand has helped.
func (m Machine) Done(since time.Time) bool {
	return m.State == life.StateInstalled && m.End == life.EndUsed && m.Installed.After(since)
}

// Next is what the next arming of a run is called, or the one that is alive. last is
// the last one of which the run knows.
func (m Machine) Next(run, last string) (id string, alive bool) {
	if Ours(m.Arming, run) {
		last = m.Arming
		if m.Live {
			return last, true
		}
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(last, run+"."))
	return fmt.Sprintf("%s.%d", run, n+1), false
}
