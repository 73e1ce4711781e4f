package life

import (
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// Apply is the life of a machine:
//
//	seen → inventoried → bound → armed → imaging → installed
//	                       ↑       |         |
//	                       |       |         +→ failed
//	                       +— disarm, expiry
//
// It gives the record after the event, and never changes the one it is given. A
// Refusal says why the event is not taken; the record may have changed even then
// (what had expired has ended), so callers store it in every case. Seen and
// inventoried come from Recognise, and arming starts again from every state from
// bound on.
func Apply(r Record, e Event, now time.Time) (Record, Outcome, error) {
	r = r.clone()
	var out Outcome
	if note := r.lapse(now); note != "" {
		out.Notes = append(out.Notes, note)
	}
	var err error
	switch e := e.(type) {
	case Tick:
	case Boot:
		out.Decision = r.boot(e, now, &out)
	case Arm:
		err = r.arm(e, now, &out)
	case Disarm:
		r.disarm(e, now, &out)
	case Claim:
		out.Ticket, err = r.claim(e, now, &out)
	case TakeSeed:
		err = r.takeSeed(e, now, &out)
	case Advance:
		err = r.advance(e, now)
	case Finish:
		err = r.finish(e, now, &out)
	case BecomeReady:
		err = r.becomeReady(e, now, &out)
	case TurnAway:
		r.Turned = &Turned{At: now, Code: e.No.Code, Reason: e.No.Reason}
	default:
		err = machine.Refuse(machine.CodeOrder, "", "unknown event %T", e)
	}
	return r, out, err
}

func (o *Outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// lapse ends what time has ended.
func (r *Record) lapse(now time.Time) string {
	g := r.Grant
	if g == nil || g.End != "" || now.Before(g.Order.Expires) {
		return ""
	}
	when := g.Order.Expires.UTC().Format(time.RFC3339)
	if r.halfWritten() {
		r.fail(now, EndExpired, "the ticket expired at "+when+" and the install never finished")
		return r.Failure
	}
	r.end(EndExpired, now)
	r.rest()
	return "the ticket of " + g.Order.Node + " expired at " + when + " unused"
}

// verify finds out whether token is the one that works now, and if not, why.
func (r *Record) verify(op string, token digest.Digest, now time.Time) error {
	again := "arm the node again if it shall be imaged: pxed arm " + r.Node
	if g := r.Grant; g != nil && g.End == "" && !token.IsZero() && g.Token == token {
		return nil
	}
	for i := len(r.Spent) - 1; i >= 0; i-- {
		s := r.Spent[i]
		if s.Token != token {
			continue
		}
		at := s.At.UTC().Format(time.RFC3339)
		switch s.End {
		case EndUsed:
			return machine.Refuse(machine.CodeUsed, again, "%s: the ticket did its work at %s and works only once", op, at)
		case EndFailed:
			return machine.Refuse(machine.CodeUsed, again, "%s: the ticket ended at %s with a failure", op, at)
		case EndExpired:
			return machine.Refuse(machine.CodeExpired, again, "%s: the ticket expired at %s", op, at)
		case EndDisarmed:
			return machine.Refuse(machine.CodeSuperseded, again, "%s: the ticket was taken back at %s", op, at)
		default:
			return machine.Refuse(machine.CodeSuperseded, again, "%s: a later boot or arming replaced the ticket at %s", op, at)
		}
	}
	return machine.Refuse(machine.CodeWrong, again, "%s: this ticket is not known", op)
}
