package machine

import "fmt"

// Code names the kind of a refusal, for callers that branch on it.
type Code string

// The kinds of refusals.
const (
	CodeUnbound    Code = "unbound"    // the machine belongs to no node
	CodeAmbiguous  Code = "ambiguous"  // it could belong to several, or what it says contradicts itself
	CodeConflict   Code = "conflict"   // two live machines claim the same
	CodeDesignOnly Code = "design"     // the profile is design-only
	CodeOrder      Code = "order"      // what is asked for makes no sense
	CodeBusy       Code = "busy"       // the machine is being imaged
	CodeNone       Code = "none"       // there is no ticket
	CodeWrong      Code = "wrong"      // a ticket that was never handed out
	CodeUsed       Code = "used"       // a ticket that has done its work
	CodeExpired    Code = "expired"    // too late
	CodeSuperseded Code = "superseded" // a later ticket replaced it, or it was taken back
	CodeUnclaimed  Code = "unclaimed"  // a receipt or a seed without the ticket fetched before
	CodeTaken      Code = "taken"      // the seed was handed out already
	CodeDocument   Code = "document"   // what was sent is not what it should be
)

// Refusal is a "no" with its reason, for the console, the log and the page.
type Refusal struct {
	Code   Code
	Reason string // one sentence without a period
	Hint   string // what the operator can do; may be empty
}

// Error is the reason.
func (r *Refusal) Error() string { return r.Reason }

// Refuse makes a Refusal.
func Refuse(code Code, hint, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Reason: fmt.Sprintf(format, args...), Hint: hint}
}
