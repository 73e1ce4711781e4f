package pxe

import (
	"net/netip"
	"time"
)

// GrantKind is what becomes of a request for an address.
type GrantKind int

// The kinds.
const (
	GrantNone    GrantKind = iota // no answer
	GrantAddress                  // Addr for Time
	GrantInform                   // only the options: the client has an address of its own
	GrantNak
)

// Grant is what the leases say about one request.
type Grant struct {
	Kind    GrantKind
	Addr    netip.Addr
	Time    time.Duration
	Host    string // host name of a machine with a reserved address
	Why     string // one clause, for the log and the text of a NAK
	Notable bool   // as in Decision
}
