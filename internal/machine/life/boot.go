package life

import (
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// DecideBoot says what a boot request gets. Only a machine with a live ticket and
// tries left gets the installer; whatever else there is boots its own disk, but for
// a machine whose disk may be half written, which waits for its operator.
func DecideBoot(r Record, p Policy, now time.Time) Decision {
	g := r.Grant
	switch {
	case r.Refused != "":
		return ownDisk(r, r.Refused)
	case r.State == StateFailed:
		return ownDisk(r, r.name()+" failed: "+r.Failure)
	case g != nil && g.End == "" && (r.State == StateArmed || r.State == StateImaging):
		return decideArmed(r, p, now)
	case r.State == StateInstalled:
		return ownDisk(r, fmt.Sprintf("%s was installed at %s and is not armed", r.name(), r.Installed.At.UTC().Format(time.RFC3339)))
	case r.Node != "":
		return ownDisk(r, r.Node+" is not armed")
	}
	return decideUnbound(r, p)
}

func ownDisk(r Record, why string) Decision {
	if r.halfWritten() {
		return Decision{Action: machine.ActionWait, Reason: why}
	}
	return Decision{Action: machine.ActionBootDisk, Reason: why}
}

// halfWritten reports whether an install may have begun to write and did not end.
func (r Record) halfWritten() bool {
	switch r.State {
	case StateArmed, StateImaging, StateFailed:
		return r.Grant != nil && (r.Grant.Touched || !r.Grant.Claimed.IsZero())
	}
	return false
}

func decideArmed(r Record, p Policy, now time.Time) Decision {
	g := r.Grant
	switch {
	case p.Status != cluster.StatusActive:
		return ownDisk(r, fmt.Sprintf("%s is armed, but the profile is %s now", r.Node, p.Status))
	case !g.Live(now):
		return ownDisk(r, "the ticket of "+r.Node+" has expired")
	}
	if why := machine.Contradiction(g.Machine, r.Identity); why != "" {
		return ownDisk(r, fmt.Sprintf("%s was armed for another machine: %s", r.Node, why))
	}
	again := g.Claimed.IsZero() && !g.Token.IsZero() && now.Sub(g.TryStart) < TryWindow && !now.Before(g.TryStart)
	if !again && g.Tries >= g.MaxTries {
		return Decision{Action: machine.ActionWait, Reason: outOfTries(r)}
	}
	try := g.Tries + 1
	if again {
		try = g.Tries
	}
	return Decision{Action: machine.ActionInstall, Reason: fmt.Sprintf("%s is armed, try %d of %d", r.Node, try, g.MaxTries), Again: again}
}

func outOfTries(r Record) string {
	return fmt.Sprintf("%s got the installer %d of %d times and never finished", r.name(), r.Grant.Tries, r.Grant.MaxTries)
}

func decideUnbound(r Record, p Policy) Decision {
	switch {
	case !p.Inventory || r.Installed != nil || !r.Reported.IsZero():
		return Decision{Action: machine.ActionBootDisk, Reason: r.Why}
	case r.Probes >= MaxProbes:
		return Decision{Action: machine.ActionBootDisk, Reason: fmt.Sprintf("%s, and %d inventory boots brought no report", r.Why, r.Probes)}
	}
	return Decision{Action: machine.ActionInventory, Reason: r.Why + ": it is only looked at"}
}

func (r *Record) boot(e Boot, now time.Time, out *Outcome) Decision {
	d := DecideBoot(*r, e.Policy, now)
	g := r.Grant
	switch {
	case d.Action == machine.ActionInventory:
		r.Probes++
	case d.Action == machine.ActionInstall && e.Token.IsZero():
		d = Decision{Action: machine.ActionBootDisk, Reason: "no ticket could be made for " + r.Node}
	case d.Action == machine.ActionInstall:
		r.retire(EndSuperseded, now)
		g.Touched = g.Touched || !g.Claimed.IsZero()
		g.Token, g.Seeded, g.SeededTo, g.Claimed = e.Token, false, digest.Digest{}, time.Time{}
		if !d.Again {
			g.Tries, g.TryStart = g.Tries+1, now
		}
		g.Machine = learn(g.Machine, r.Identity)
		out.note("%s gets the installer: %s", r.Node, d.Reason)
	case g != nil && g.End == "" && g.Tries >= g.MaxTries && d.Reason == outOfTries(*r):
		g.Touched = true // it got the installer; what that did is not known
		r.fail(now, EndFailed, outOfTries(*r))
		out.note("%s failed: %s", r.name(), r.Failure)
	}
	return d
}
