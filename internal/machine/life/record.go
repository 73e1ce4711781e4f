// Package life decides about machines: which machine a request comes from and which
// node it is, what a boot request gets, and how a machine goes from seen to
// installed, once for each arming. Everything is a value in and a value out; the
// clock and the secrets come from outside, the ledger keeps the records.
package life

import (
	"slices"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// State is where a machine is in its life. A machine without a record is unknown.
type State string

// The states; see Apply for the ways between them.
const (
	StateSeen        State = "seen"        // it asked for something
	StateInventoried State = "inventoried" // it has sent a report
	StateBound       State = "bound"       // it belongs to a node
	StateArmed       State = "armed"       // it may be imaged, once
	StateImaging     State = "imaging"     // it has fetched its ticket
	StateInstalled   State = "installed"   // it sent a receipt
	StateFailed      State = "failed"      // it could not be imaged; a new arming is needed
)

// Record is what is known of one machine. It holds no secret.
type Record struct {
	Key      machine.Key      `json:"key"`
	MACs     []cluster.MAC    `json:"macs"`
	Identity machine.Identity `json:"identity"`
	Complete bool             `json:"complete,omitempty"` // MACs are all it has: it sent a report
	State    State            `json:"state"`
	Node     string           `json:"node,omitempty"`    // bound to
	Why      string           `json:"why,omitempty"`     // why bound, or why to no node
	Refused  string           `json:"refused,omitempty"` // why it may not be imaged whatever its state

	FirstSeen time.Time `json:"firstSeen"`
	LastSeen  time.Time `json:"lastSeen"`
	Reported  time.Time `json:"reported,omitzero"`
	Probes    int       `json:"probes,omitempty"` // inventory boots handed out since the last report

	Grant     *Grant            `json:"grant,omitempty"` // the last one, also when it has ended
	Spent     []Spent           `json:"spent,omitempty"` // tokens that work no more, newest last
	Progress  *machine.Progress `json:"progress,omitempty"`
	Installed *Installed        `json:"installed,omitempty"` // what the disk holds; nil again when a later install did not end well
	Failure   string            `json:"failure,omitempty"`   // in StateFailed: why
	Turned    *Turned           `json:"turned,omitempty"`    // its last refused request since it was armed, disarmed, or had its ticket
}

// Turned is a request of a machine that was refused.
type Turned struct {
	At     time.Time    `json:"at"`
	Code   machine.Code `json:"code"`
	Reason string       `json:"reason"`
}

// Grant is the standing of a ticket: the right to image, and the order. The secret
// is not in it: every boot that is answered with the installer gets a new one, of
// which only the hash is kept.
type Grant struct {
	ID       string           `json:"id"`    // chosen by who armed; the same ID twice is one arming
	Order    machine.Ticket   `json:"order"` // without ID
	MaxTries int              `json:"maxTries"`
	Tries    int              `json:"tries"`
	Issued   time.Time        `json:"issued"`
	Token    digest.Digest    `json:"token,omitzero"` // hash of the secret of this try
	TryStart time.Time        `json:"tryStart,omitzero"`
	Claimed  time.Time        `json:"claimed,omitzero"`  // when this try fetched the ticket
	Seeded   bool             `json:"seeded,omitempty"`  // this try fetched the seed
	SeededTo digest.Digest    `json:"seededTo,omitzero"` // the start that it went to, which may fetch it again
	Touched  bool             `json:"touched,omitempty"` // an earlier try, or the arming that this one replaced, may have written
	Machine  machine.Identity `json:"machine"`           // that it was given to; fixed at the latest by the first try
	End      End              `json:"end,omitempty"`
	Ended    time.Time        `json:"ended,omitzero"`
	Receipt  digest.Digest    `json:"receipt,omitzero"` // of the receipt that consumed it
}

// End says how a grant ended; empty means it is alive.
type End string

// The ends of a grant.
const (
	EndUsed       End = "used"       // consumed by a receipt
	EndFailed     End = "failed"     // consumed by a receipt that reports failure, or out of tries
	EndExpired    End = "expired"    // nobody came in time
	EndSuperseded End = "superseded" // replaced by a later arming or try
	EndDisarmed   End = "disarmed"   // taken back by the operator
)

// Spent is a token that works no more, and why.
type Spent struct {
	Token digest.Digest `json:"token"`
	End   End           `json:"end"`
	At    time.Time     `json:"at"`
}

// Installed is an install that succeeded.
type Installed struct {
	At       time.Time      `json:"at"`
	Node     string         `json:"node"`
	Grant    string         `json:"grant"`
	Token    digest.Digest  `json:"token"` // of the try that did it
	Index    digest.Digest  `json:"index"`
	Disk     string         `json:"disk"` // serial or WWN, else the name
	DiskGUID string         `json:"diskGUID,omitempty"`
	ReadyAt  time.Time      `json:"readyAt,omitzero"` // when the node first reached its baseline
	Ready    *machine.Ready `json:"ready,omitempty"`
}

// maxSpent bounds how many dead tokens a record remembers; older ones are "wrong".
const maxSpent = 32

// Live reports whether the grant can still lead to an install.
func (g *Grant) Live(now time.Time) bool {
	return g != nil && g.End == "" && now.Before(g.Order.Expires)
}

// HashToken is what is kept of a ticket's ID.
func HashToken(id string) digest.Digest { return digest.Of([]byte("slipway-ticket\x00" + id)) }

// clone copies everything that Apply may change.
func (r Record) clone() Record {
	r.MACs, r.Spent = slices.Clone(r.MACs), slices.Clone(r.Spent)
	if r.Grant != nil {
		g := *r.Grant
		r.Grant = &g
	}
	if r.Installed != nil {
		i := *r.Installed
		r.Installed = &i
	}
	if r.Turned != nil {
		t := *r.Turned
		r.Turned = &t
	}
	return r
}

// end closes the grant and its token.
func (r *Record) end(how End, now time.Time) {
	if r.Grant == nil || r.Grant.End != "" {
		return
	}
	r.retire(how, now)
	r.Grant.End, r.Grant.Ended = how, now
}

// retire makes the token of this try a dead one.
func (r *Record) retire(how End, now time.Time) {
	if !r.Grant.Token.IsZero() {
		r.Spent = append(r.Spent, Spent{Token: r.Grant.Token, End: how, At: now})
		r.Spent = r.Spent[max(0, len(r.Spent)-maxSpent):]
	}
	r.Grant.Token = digest.Digest{}
}

func (r *Record) fail(now time.Time, how End, why string) {
	if r.halfWritten() {
		r.Installed = nil
	}
	r.end(how, now)
	r.State, r.Failure = StateFailed, why
}

// rest is the state of a machine that is not armed and whose disk is whole.
func (r *Record) rest() {
	r.State, r.Failure = StateBound, ""
	if r.Installed != nil && r.Installed.Node == r.Node {
		r.State = StateInstalled
	}
}

// name is what people call the machine.
func (r Record) name() string {
	if r.Node == "" {
		return "machine " + string(r.Key)
	}
	return r.Node
}
