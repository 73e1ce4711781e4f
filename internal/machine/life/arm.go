package life

import (
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
)

func (r *Record) arm(e Arm, now time.Time, out *Outcome) error {
	if r.Grant != nil && r.Grant.ID == e.ID && e.ID != "" {
		return nil
	}
	if err := r.mayArm(e, now); err != nil {
		return err
	}
	if r.Grant != nil && r.Grant.End == "" {
		out.note("the earlier ticket of %s is replaced", r.Node)
	}
	half := r.halfWritten()
	r.end(EndSuperseded, now)
	e.Order.ID = ""
	r.Grant = &Grant{ID: e.ID, Order: e.Order, MaxTries: e.MaxTries, Issued: now, Machine: r.Identity, Touched: half}
	r.State, r.Failure, r.Progress, r.Turned = StateArmed, "", nil, nil
	out.note("%s is armed until %s, for at most %d tries", r.Node, e.Order.Expires.UTC().Format(time.RFC3339), e.MaxTries)
	return nil
}

func (r *Record) mayArm(e Arm, now time.Time) error {
	switch {
	case e.Status != cluster.StatusActive:
		return machine.Refuse(machine.CodeDesignOnly, "set status: active in the profile when its machines may be written", "the profile is %s: nothing is armed", e.Status)
	case r.Node == "":
		return machine.Refuse(machine.CodeUnbound, "", "machine %s belongs to no node: %s", r.Key, r.Why)
	case r.Refused != "":
		return machine.Refuse(machine.CodeConflict, "pxed forget drops the record of a machine that is gone", "%s cannot be armed: %s", r.Node, r.Refused)
	case r.State == StateImaging && !e.Replace:
		return machine.Refuse(machine.CodeBusy, "wait for it, or disarm it first: pxed disarm "+r.Node, "%s is being imaged since %s", r.Node, r.Grant.Claimed.UTC().Format(time.RFC3339))
	}
	return checkArm(r.Node, e, now)
}

func checkArm(node string, e Arm, now time.Time) error {
	order := e.Order
	switch {
	case e.ID == "":
		return machine.Refuse(machine.CodeOrder, "", "the arming has no key")
	case order.Node != node:
		return machine.Refuse(machine.CodeOrder, "", "the order is for %s, the machine is %s", order.Node, node)
	case !order.Expires.After(now):
		return machine.Refuse(machine.CodeOrder, "", "the ticket would have expired before it begins, at %s", order.Expires.UTC().Format(time.RFC3339))
	case order.Expires.After(now.Add(MaxValidity)):
		return machine.Refuse(machine.CodeOrder, "", "the ticket would live longer than %d days", int(MaxValidity.Hours()/24))
	case e.MaxTries < 1 || e.MaxTries > MaxTries:
		return machine.Refuse(machine.CodeOrder, "", "%d tries: from 1 to %d are possible", e.MaxTries, MaxTries)
	}
	return order.CheckOrder()
}

func (r *Record) disarm(e Disarm, now time.Time, out *Outcome) {
	half := r.halfWritten()
	r.Turned = nil
	switch r.State {
	case StateArmed, StateImaging:
		r.end(EndDisarmed, now)
		if half {
			r.fail(now, EndDisarmed, "disarmed while it was imaged: "+e.Reason)
		} else {
			r.rest()
		}
		out.note("%s is disarmed: %s", r.name(), e.Reason)
	case StateFailed:
		r.rest()
		out.note("the failure of %s is put aside: %s", r.name(), e.Reason)
	}
}
