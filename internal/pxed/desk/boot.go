package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// Ask is what a boot request tells about who sent it.
type Ask struct {
	From     string // address
	MAC      string
	Serial   string
	UUID     string
	Firmware string // uefi or bios
}

// Answer is what a boot request gets.
type Answer struct {
	Action  machine.Action
	Message string // for the console: what and why
	After   int    // seconds, for machine.ActionWait
	Node    string
	MAC     string // canonical
	Ticket  string // the secret, for machine.ActionInstall
}

// waitAfter is how long a machine that has to wait sleeps before it asks again, seconds.
const waitAfter = 30

// Boot decides what a machine that network-boots gets. Whatever goes wrong, it
// boots its own disk.
func (d *Desk) Boot(ctx context.Context, ask Ask) Answer {
	answer, err := d.boot(ctx, ask)
	var no *machine.Refusal
	switch {
	case errors.As(err, &no):
		d.note(ctx, "boot", "", "", no)
		return Answer{Action: machine.ActionBootDisk, Message: no.Reason, MAC: answer.MAC}
	case err != nil:
		return Answer{Action: machine.ActionBootDisk, Message: "pxed cannot decide now, booting the disk: " + err.Error(), MAC: answer.MAC}
	}
	return answer
}

func (d *Desk) boot(ctx context.Context, ask Ask) (Answer, error) {
	mac, err := machine.ParseMAC(ask.MAC)
	if err != nil {
		return Answer{}, &machine.Refusal{
			Code: machine.CodeDocument, Reason: fmt.Sprintf("a boot request from %s names no MAC address", ask.From),
			Hint: "the boot URL must be given to iPXE with its settings, as pxed's DHCP does",
		}
	}
	secret, err := d.secret()
	if err != nil {
		return Answer{MAC: string(mac)}, err
	}
	answer := Answer{MAC: string(mac)}
	err = d.change(ctx, func(fleet []life.Record) (Change, error) {
		c, rec, decision, err := d.decideBoot(fleet, mac, ask, secret)
		answer.Action, answer.Node, answer.Message = decision.Action, rec.Node, decision.Reason
		return c, err
	})
	switch answer.Action {
	case machine.ActionInstall:
		answer.Ticket = secret
	case machine.ActionWait:
		answer.After = waitAfter
	}
	return answer, err
}

func (d *Desk) decideBoot(fleet []life.Record, mac cluster.MAC, ask Ask, secret string) (Change, life.Record, life.Decision, error) {
	now := d.now()
	sight := life.Sighting{MACs: []cluster.MAC{mac}, Identity: machine.Identity{Serial: ask.Serial, UUID: ask.UUID}}
	c, rec, err := d.recognise(fleet, sight, "boot")
	if err != nil {
		return c, rec, life.Decision{}, err
	}
	if rec.Grant.Live(now) && rec.Grant.Order.Index != d.image.Index {
		c.put(rec, "boot", nil, now)
		return c, rec, life.Decision{}, d.anotherImage(rec)
	}
	event := life.Boot{Token: life.HashToken(secret), Policy: d.policy()}
	after, out, err := life.Apply(rec, event, now)
	notes := out.Notes
	if out.Decision.Action != machine.ActionInstall {
		notes = append(notes, fmt.Sprintf("booted from the network, gets %s: %s", out.Decision.Action, out.Decision.Reason))
	}
	c.put(after, "boot", notes, now)
	if rec.Refused != "" {
		c.Events[len(c.Events)-1].Code = string(machine.CodeConflict)
	}
	return c, after, out.Decision, err
}

// recognise finds the record of a sighting and puts aside what else changes by it.
// The record itself is not yet in the change: the caller goes on with it.
func (d *Desk) recognise(fleet []life.Record, s life.Sighting, kind string) (Change, life.Record, error) {
	var c Change
	got, err := life.Recognise(fleet, s, d.cluster.Nodes, d.now())
	if err != nil {
		return c, got.Record, err
	}
	c.Put, c.Gone = got.Changed, append(got.Gone, crowd(fleet, got.Record.Key)...)
	for _, note := range got.Notes {
		e := Event{At: d.now(), Machine: got.Record.Key, Node: got.Record.Node, Kind: kind, Text: note}
		if got.Record.Refused != "" {
			e.Code = string(machine.CodeConflict)
		}
		c.Events = append(c.Events, e)
	}
	return c, got.Record, nil
}

// maxStrangers bounds the machines of no node that are remembered: whoever is on
// the network can make them up.
const maxStrangers = 256

// crowd names the strangers that are forgotten to make room for another one: those
// that were not heard of for longest.
func crowd(fleet []life.Record, but machine.Key) []machine.Key {
	var strangers []life.Record
	for _, r := range fleet {
		if r.Node == "" && r.Installed == nil && r.Key != but {
			strangers = append(strangers, r)
		}
	}
	slices.SortFunc(strangers, func(a, b life.Record) int { return a.LastSeen.Compare(b.LastSeen) })
	var gone []machine.Key
	for _, r := range strangers[:max(0, len(strangers)-maxStrangers+1)] {
		gone = append(gone, r.Key)
	}
	return gone
}
