package machine

import (
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
)

// TicketFormat is the version of the ticket.
const TicketFormat = "slipway-ticket/1"

// Ticket is the one-shot right, and the order, to image one machine. Its ID is a
// random secret: who has it is the machine that was armed. It is handed out to
// the machine's own boot request, works until it expires, and is consumed by a
// receipt. On a stick the ticket lies in the bundle.
type Ticket struct {
	Format  string    `json:"format"`
	ID      string    `json:"id"` // 32 random bytes, hex
	Node    string    `json:"node"`
	Cluster string    `json:"cluster"`
	Expires time.Time `json:"expires"`

	// Index is the digest of the signed index (index.json) of the image to
	// write, and Key the OpenSSH public key line that must have signed it.
	Index digest.Digest `json:"index"`
	Key   string        `json:"key"`

	System    cluster.Selector `json:"system"`              // must match exactly one disk
	Data      []DataOrder      `json:"data,omitempty"`      // what is done with data disks
	Overwrite []string         `json:"overwrite,omitempty"` // serials (or WWNs) of disks whose foreign data may be destroyed
	Sanitize  Sanitize         `json:"sanitize,omitempty"`  // of the system disk, before writing
}

// DataOrder says what to do with one data disk.
type DataOrder struct {
	Name   string           `json:"name"`
	Disk   cluster.Selector `json:"disk"`
	Policy cluster.Policy   `json:"policy"`
}

// DataOrders are the orders for the data disks of a node: as the profile says, or
// with one policy for all of them when one is given.
func DataOrders(node cluster.Node, policy cluster.Policy) []DataOrder {
	var out []DataOrder
	for _, disk := range node.Data {
		o := DataOrder{Name: disk.Name, Disk: disk.Selector, Policy: disk.Policy}
		if policy != "" {
			o.Policy = policy
		}
		out = append(out, o)
	}
	return out
}

// Sanitize is how old content is destroyed before a disk is written.
type Sanitize string

// The ways, from nothing to everything. Auto takes the first of the disk's own
// commands that it supports, then discard, then zeros.
const (
	SanitizeNone    Sanitize = ""
	SanitizeAuto    Sanitize = "auto"
	SanitizeDiscard Sanitize = "discard"
	SanitizeZero    Sanitize = "zero"
)

// Values lists what a Sanitize may be, beside nothing.
func (Sanitize) Values() []string {
	return []string{string(SanitizeAuto), string(SanitizeDiscard), string(SanitizeZero)}
}

// Stage is where an install is.
type Stage string

// The stages of an install, in order.
const (
	StageInventory Stage = "inventory"
	StageSelect    Stage = "select"
	StageSanitize  Stage = "sanitize"
	StageWrite     Stage = "write"
	StageSeed      Stage = "seed"
	StageReadBack  Stage = "read-back"
	StageReceipt   Stage = "receipt"
)

// Progress is a sign of life from an install. Bytes count within the stage.
type Progress struct {
	Stage Stage   `json:"stage"`
	Done  int64   `json:"done"`
	Total int64   `json:"total"`
	Rate  float64 `json:"rate"` // bytes a second
	Note  string  `json:"note,omitempty"`
}

// ReceiptFormat is the version of the receipt.
const ReceiptFormat = "slipway-receipt/1"

// Receipt is what the machine says it wrote, after reading it back. Error is set
// when it gives up instead; then Written says whether the disk was touched.
type Receipt struct {
	Format    string        `json:"format"`
	Ticket    string        `json:"ticket"` // Ticket.ID
	Node      string        `json:"node"`
	Identity  Identity      `json:"identity"`
	Disk      Disk          `json:"disk"`  // the system disk that was chosen
	Index     digest.Digest `json:"index"` // of the index that was installed
	Seed      digest.Digest `json:"seed"`  // of the seed's tree
	Bytes     int64         `json:"bytes"` // of the image, holes included
	ReadBack  bool          `json:"readBack"`
	DiskGUID  string        `json:"diskGUID,omitempty"`
	Sanitized string        `json:"sanitized,omitempty"` // what was done, in words
	Data      []DataResult  `json:"data,omitempty"`
	HostKeys  []string      `json:"hostKeys,omitempty"` // SSH host keys that the node will have, authorized_keys form
	Started   time.Time     `json:"started"`
	Finished  time.Time     `json:"finished"`
	Written   bool          `json:"written"`
	Error     string        `json:"error,omitempty"`
	Reasons   []string      `json:"reasons,omitempty"` // one sentence for each refusal
}

// DataResult is what was done with one data disk.
type DataResult struct {
	Name   string `json:"name"`
	Serial string `json:"serial,omitempty"`
	Action string `json:"action"` // "kept", "wiped", "absent"
}
