package desk

import (
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Machine is what operators see of a machine. It holds no secret, nor the hash of one.
type Machine struct {
	Key       machine.Key      `json:"key"`
	State     life.State       `json:"state"`
	Node      string           `json:"node,omitempty"`
	MACs      []cluster.MAC    `json:"macs"`
	Identity  machine.Identity `json:"identity"`
	Seen      *time.Time       `json:"seen,omitempty"` // when it last asked for anything
	Boots     string           `json:"boots"`          // what it gets when it boots from the network, in words
	Refused   string           `json:"refused,omitempty"`
	Bound     string           `json:"bound,omitempty"` // what it is recognised as its node by
	Why       string           `json:"why,omitempty"`   // why it is refused, not imaged, or failed
	Hint      string           `json:"hint,omitempty"`  // what the operator can do
	Reasons   []string         `json:"reasons,omitempty"`
	Turned    *life.Turned     `json:"turned,omitempty"` // its last refused request since it was armed, disarmed, or had its ticket
	Grant     *Grant           `json:"grant,omitempty"`
	Progress  *Progress        `json:"progress,omitempty"`
	Report    *machine.Report  `json:"report,omitempty"`
	Receipt   *machine.Receipt `json:"receipt,omitempty"`   // the last one, without its ticket
	Installed *time.Time       `json:"installed,omitempty"` // when the receipt of the image on its disk came
	Ready     *time.Time       `json:"ready,omitempty"`     // when the node first reached its baseline
	HostKeys  []string         `json:"hostKeys,omitempty"`  // that the node reported then, authorized_keys form
}

// Grant is a right to image, as operators see it.
type Grant struct {
	ID        string              `json:"id"` // of the arming, chosen by who armed
	Live      bool                `json:"live"`
	Expires   time.Time           `json:"expires"`
	Tries     int                 `json:"tries"`
	MaxTries  int                 `json:"maxTries"`
	End       life.End            `json:"end,omitempty"`
	System    cluster.Selector    `json:"system"`
	Data      []machine.DataOrder `json:"data,omitempty"`
	Overwrite []string            `json:"overwrite,omitempty"`
	Sanitize  machine.Sanitize    `json:"sanitize,omitempty"`
}

// Progress is where an install is.
type Progress struct {
	machine.Progress
	Percent int       `json:"percent"`        // of the stage
	Left    int       `json:"left,omitempty"` // seconds of the stage, estimated; 0 is not known
	At      time.Time `json:"at"`
}

func progressOf(p machine.Progress, at time.Time) *Progress {
	out := &Progress{Progress: p, At: at}
	if p.Total > 0 {
		out.Percent = int(min(100, max(0, p.Done*100/p.Total)))
	}
	if left := p.Total - p.Done; p.Rate > 0 && left > 0 {
		out.Left = int(float64(left)/p.Rate) + 1
	}
	return out
}

// Event is something that happened, as operators see it.
type Event struct {
	Seq     int64       `json:"seq"`
	At      time.Time   `json:"at"`
	Machine machine.Key `json:"machine,omitempty"`
	Node    string      `json:"node,omitempty"`
	Kind    string      `json:"kind"`           // boot, report, ticket, seed, receipt, ready, arm, disarm, bind, forget, expire
	Code    string      `json:"code,omitempty"` // of a refusal
	Text    string      `json:"text"`
}
