package life

import (
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// Event is something that happens to a machine. Hashes of tokens are made by
// HashToken, digests of receipts by Receipt.Digest.
type Event interface{ event() }

// Tick lets time pass: what has expired ends.
type Tick struct{}

// Boot is a boot request. The machine gets the secret that Token is the hash of
// when, and only when, the Decision is to install.
type Boot struct {
	Token  digest.Digest
	Policy Policy
}

// Policy is what the profile allows.
type Policy struct {
	Status    cluster.Status
	Inventory bool // machines of no node, too, may be started to report
}

// Arm lets the machine be imaged once. ID is chosen by the caller: the same ID
// again is the same arming and changes nothing.
type Arm struct {
	ID       string
	Status   cluster.Status
	Order    machine.Ticket // without ID
	MaxTries int
	Replace  bool // also when it is being imaged right now
}

// Disarm takes the ticket back.
type Disarm struct{ Reason string }

// Claim is the installer fetching its ticket.
type Claim struct{ Token digest.Digest }

// TakeSeed is the installer fetching the seed. Start is the hash of what names the
// start of the machine, or zero.
type TakeSeed struct{ Token, Start digest.Digest }

// Advance is a sign of life of the installer.
type Advance struct {
	Token    digest.Digest
	Progress machine.Progress
}

// Finish is the receipt, of success or of failure.
type Finish struct {
	Token   digest.Digest
	Receipt machine.Receipt
}

// TurnAway is a request of the machine that was refused, to be remembered.
type TurnAway struct{ No *machine.Refusal }

// Report is an Event by itself; see Recognise for what it says about identity.

// BecomeReady is an installed node that reached its baseline. Token is that of the
// ticket that installed it.
type BecomeReady struct {
	Token digest.Digest
	Ready machine.Ready
}

func (Tick) event()        {}
func (Boot) event()        {}
func (Arm) event()         {}
func (Disarm) event()      {}
func (Claim) event()       {}
func (TakeSeed) event()    {}
func (Advance) event()     {}
func (Finish) event()      {}
func (BecomeReady) event() {}
func (TurnAway) event()    {}

// Decision is the answer to a boot request and why.
type Decision struct {
	Action machine.Action
	Reason string // one sentence without a period
	Again  bool   // for ActionInstall: the same try asks again, nothing is counted
}

// Outcome is what an event led to beside the new record.
type Outcome struct {
	Decision Decision        // of Boot
	Ticket   *machine.Ticket // of Claim: the order, without ID
	Notes    []string        // what happened, for the event log; one sentence each
}

// Limits of what may be asked for.
const (
	// DefaultTries is how often a machine may be started into the installer.
	DefaultTries = 3
	// MaxTries bounds Arm.MaxTries.
	MaxTries = 10
	// MaxProbes is how often a machine is started for inventory without a report.
	MaxProbes = 3
	// MaxValidity is the longest time a ticket may live.
	MaxValidity = 7 * 24 * time.Hour
	// TryWindow is how long repeated boot requests count as one try: firmware and
	// iPXE ask again when an answer is lost.
	TryWindow = 20 * time.Second
	// InstallTime is what an installer has at least from fetching its ticket on: a
	// ticket does not run out under a disk that is half written.
	InstallTime = time.Hour
)
