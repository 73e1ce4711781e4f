package life

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// start is when all stories begin.
func start() time.Time { return time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC) }

func nodes() []cluster.Node {
	return []cluster.Node{
		{Name: "n1", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:01:01"}, {MAC: "52:54:00:00:01:02"}}},
		{Name: "n2", Serial: "SER-N2", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:02:01"}}},
		{Name: "n3", Interfaces: []cluster.Interface{{MAC: "52:54:00:00:03:01"}}},
	}
}

func order(node string, expires time.Time) machine.Ticket {
	return machine.Ticket{
		Format: machine.TicketFormat, Node: node, Cluster: "c", Expires: expires, Index: digest.Of([]byte("image")), Key: "ssh-ed25519 AAAA",
		System: cluster.Selector{Serial: "DISK-" + node},
	}
}

func receipt(node, secret string) machine.Receipt {
	return machine.Receipt{
		Format: machine.ReceiptFormat, Ticket: secret, Node: node, Disk: machine.Disk{Name: "sda", Serial: "DISK-" + node}, Index: digest.Of([]byte("image")),
		Seed: digest.Of([]byte("seed")), Bytes: 1e9, ReadBack: true, Written: true, Started: start(), Finished: start().Add(time.Minute),
	}
}

// secret makes the ID of the i-th ticket of a story.
func secret(i int) string { return fmt.Sprintf("%064x", i+1) }

func allowed() Policy { return Policy{Status: cluster.StatusActive} }

// story is one machine of n2 and a clock.
type story struct {
	t      *testing.T
	r      Record
	now    time.Time
	tokens int
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, now: start()}
	got, err := Recognise(nil, Sighting{MACs: []cluster.MAC{"52:54:00:00:02:01"}, Identity: machine.Identity{Serial: "SER-N2", UUID: "uuid-of-n2"}}, nodes(), s.now)
	if err != nil || got.Record.State != StateBound || got.Record.Node != "n2" {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	s.r = got.Record
	return s
}

// do applies an event that must be taken.
func (s *story) do(e Event) Outcome {
	s.t.Helper()
	before := dump(s.t, s.r)
	r, out, err := Apply(s.r, e, s.now)
	if err != nil {
		s.t.Fatalf("%T: %v", e, err)
	}
	if dump(s.t, s.r) != before {
		s.t.Fatalf("%T changed the record it was given", e)
	}
	s.r = r
	return out
}

// no applies an event that must be refused with this code.
func (s *story) no(code machine.Code, e Event) {
	s.t.Helper()
	r, _, err := Apply(s.r, e, s.now)
	var refusal *machine.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.Reason == "" {
		s.t.Fatalf("%T: %v, not refused as %s", e, err, code)
	}
	s.r = r
}

func (s *story) state(want State) {
	s.t.Helper()
	if s.r.State != want {
		s.t.Fatalf("the machine is %s, not %s (%s)", s.r.State, want, s.r.Failure)
	}
}

func (s *story) arm() { s.t.Helper(); s.armAs(fmt.Sprint("arming ", s.now)) }

func (s *story) armAs(id string) {
	s.t.Helper()
	s.do(Arm{ID: id, Status: cluster.StatusActive, Order: order("n2", s.now.Add(2*time.Hour)), MaxTries: 3})
}

// boot asks for a boot and gives the decision and the secret it would come with.
func (s *story) boot(want machine.Action) string {
	s.t.Helper()
	id := secret(s.tokens)
	s.tokens++
	if d := s.do(Boot{Token: HashToken(id), Policy: allowed()}).Decision; d.Action != want || d.Reason == "" {
		s.t.Fatalf("the machine gets %s (%s), not %s", d.Action, d.Reason, want)
	}
	return id
}

func (s *story) install(id string) {
	s.t.Helper()
	s.do(Claim{HashToken(id)})
	s.do(TakeSeed{Token: HashToken(id)})
	s.do(Advance{HashToken(id), machine.Progress{Stage: machine.StageWrite, Done: 1, Total: 2}})
	s.do(Finish{HashToken(id), receipt("n2", id)})
	s.state(StateInstalled)
}

func dump(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestInstalledOnce(t *testing.T) {
	s := newStory(t)
	s.boot(machine.ActionBootDisk)
	s.arm()
	id := s.boot(machine.ActionInstall)
	s.no(machine.CodeUnclaimed, TakeSeed{Token: HashToken(id)})
	s.no(machine.CodeUnclaimed, Finish{HashToken(id), receipt("n2", id)})
	s.no(machine.CodeWrong, Claim{HashToken("guessed")})
	s.no(machine.CodeWrong, Claim{})
	if out := s.do(Claim{HashToken(id)}); out.Ticket == nil || out.Ticket.ID != "" || out.Ticket.Node != "n2" {
		t.Fatalf("%+v", out.Ticket)
	}
	s.state(StateImaging)
	s.do(Claim{HashToken(id)}) // the answer was lost
	s.do(TakeSeed{Token: HashToken(id)})
	s.no(machine.CodeTaken, TakeSeed{Token: HashToken(id)})
	s.no(machine.CodeTaken, TakeSeed{Token: HashToken(id), Start: HashToken("a start")})
	s.do(Finish{HashToken(id), receipt("n2", id)})
	s.state(StateInstalled)

	before := dump(t, s.r)
	s.do(Finish{HashToken(id), receipt("n2", id)})
	if dump(t, s.r) != before {
		t.Error("the second receipt changed something")
	}
	other := receipt("n2", id)
	other.Bytes++
	s.no(machine.CodeUsed, Finish{HashToken(id), other})
	s.no(machine.CodeUsed, Claim{HashToken(id)})
	s.no(machine.CodeUsed, TakeSeed{Token: HashToken(id)})
	for range 100 {
		s.now = s.now.Add(time.Minute)
		s.boot(machine.ActionBootDisk)
	}
	s.state(StateInstalled)
	if s.r.Installed.Disk != "DISK-n2" {
		t.Errorf("%+v", s.r.Installed)
	}
}

func TestReady(t *testing.T) {
	s := newStory(t)
	s.no(machine.CodeNone, BecomeReady{Ready: machine.Ready{Node: "n2"}})
	s.arm()
	id := s.boot(machine.ActionInstall)
	s.install(id)
	s.no(machine.CodeWrong, BecomeReady{HashToken("x"), machine.Ready{Node: "n2"}})
	s.no(machine.CodeDocument, BecomeReady{HashToken(id), machine.Ready{Node: "n3"}})
	s.do(BecomeReady{HashToken(id), machine.Ready{Node: "n2", MachineID: "m"}})
	first := s.r.Installed.ReadyAt
	s.now = s.now.Add(time.Hour)
	s.do(BecomeReady{HashToken(id), machine.Ready{Node: "n2", MachineID: "m"}})
	if s.r.Installed.ReadyAt != first || first.IsZero() {
		t.Errorf("ready at %v", s.r.Installed.ReadyAt)
	}
}

// A power cut: the machine comes back and goes on with the same right, a new
// secret, and one try less.
func TestPowerCut(t *testing.T) {
	s := newStory(t)
	s.arm()
	var ids []string
	for range 3 {
		id := s.boot(machine.ActionInstall)
		s.do(Claim{HashToken(id)})
		s.do(TakeSeed{Token: HashToken(id)})
		ids = append(ids, id)
		s.now = s.now.Add(time.Minute)
	}
	s.no(machine.CodeSuperseded, Finish{HashToken(ids[0]), receipt("n2", ids[0])})
	s.boot(machine.ActionWait)
	s.state(StateFailed)
	s.no(machine.CodeUsed, Finish{HashToken(ids[2]), receipt("n2", ids[2])})
	s.boot(machine.ActionWait)
	s.arm()
	s.install(s.boot(machine.ActionInstall))
}

// Firmware asks again when an answer is lost: that is one try, for a short time.
func TestAskedAgain(t *testing.T) {
	s := newStory(t)
	s.arm()
	first := s.boot(machine.ActionInstall)
	s.now = s.now.Add(TryWindow - time.Second)
	second := s.boot(machine.ActionInstall)
	if s.r.Grant.Tries != 1 {
		t.Errorf("%d tries", s.r.Grant.Tries)
	}
	s.no(machine.CodeSuperseded, Claim{HashToken(first)})
	s.now = s.now.Add(2 * time.Second)
	third := s.boot(machine.ActionInstall)
	if s.r.Grant.Tries != 2 {
		t.Errorf("%d tries", s.r.Grant.Tries)
	}
	s.no(machine.CodeSuperseded, Claim{HashToken(second)})
	s.do(Claim{HashToken(third)})
	s.boot(machine.ActionInstall)
	if s.r.Grant.Tries != 3 {
		t.Error("a boot after the ticket was fetched is another try")
	}
}

// An installer that never calls back is tried so often and no more.
func TestNeverCallsBack(t *testing.T) {
	s := newStory(t)
	s.arm()
	for range 3 {
		s.boot(machine.ActionInstall)
		s.now = s.now.Add(5 * time.Minute)
	}
	s.boot(machine.ActionWait)
	s.state(StateFailed)
	if !strings.Contains(s.r.Failure, "3 of 3 times") {
		t.Errorf("failure: %s", s.r.Failure)
	}
	s.do(Disarm{"looked at it"})
	s.state(StateBound)
	s.boot(machine.ActionBootDisk)
}

func TestExpiry(t *testing.T) {
	s := newStory(t)
	s.arm()
	s.now = s.now.Add(2 * time.Hour)
	s.boot(machine.ActionBootDisk)
	s.state(StateBound)

	s.arm()
	id := s.boot(machine.ActionInstall)
	s.now = s.now.Add(2*time.Hour - time.Minute)
	s.do(Claim{HashToken(id)}) // a minute before the end: the disk gets its time
	s.now = s.now.Add(30 * time.Minute)
	s.do(Advance{HashToken(id), machine.Progress{Stage: machine.StageWrite}})
	s.now = s.now.Add(30 * time.Minute)
	s.no(machine.CodeExpired, Advance{HashToken(id), machine.Progress{Stage: machine.StageWrite}})
	s.state(StateFailed)
	s.boot(machine.ActionWait)
}

// An armed machine that was installed before, and whose ticket ends unused, still
// has its system.
func TestRestoredAfterUnusedTicket(t *testing.T) {
	for name, end := range map[string]func(*story){
		"expired":  func(s *story) { s.now = s.now.Add(3 * time.Hour); s.do(Tick{}) },
		"disarmed": func(s *story) { s.do(Disarm{"changed my mind"}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.arm()
			s.install(s.boot(machine.ActionInstall))
			s.now = s.now.Add(time.Hour)
			s.arm()
			id := s.boot(machine.ActionInstall)
			end(s)
			s.state(StateInstalled)
			if _, _, err := Apply(s.r, Claim{HashToken(id)}, s.now); err == nil {
				t.Error("the ticket still works")
			}
		})
	}
}

func TestDisarmWhileImaging(t *testing.T) {
	s := newStory(t)
	s.arm()
	s.install(s.boot(machine.ActionInstall))
	s.now = s.now.Add(time.Hour)
	s.arm()
	id := s.boot(machine.ActionInstall)
	s.do(Claim{HashToken(id)})
	s.no(machine.CodeBusy, Arm{ID: "x", Status: cluster.StatusActive, Order: order("n2", s.now.Add(time.Hour)), MaxTries: 3})
	s.do(Disarm{"stop"})
	s.state(StateFailed)
	s.no(machine.CodeSuperseded, Advance{HashToken(id), machine.Progress{Stage: machine.StageWrite}})
	if s.r.Installed != nil {
		t.Error("what was on the disk counts as installed though it may be half overwritten")
	}
	s.boot(machine.ActionWait)
	s.now = s.now.Add(time.Second)
	s.arm() // remembers that the disk is not whole
	s.do(Disarm{"again"})
	s.state(StateFailed)
}

func TestReplaceWhileImaging(t *testing.T) {
	s := newStory(t)
	s.arm()
	old := s.boot(machine.ActionInstall)
	s.do(Claim{HashToken(old)})
	s.do(Arm{ID: "new", Status: cluster.StatusActive, Order: order("n2", s.now.Add(time.Hour)), MaxTries: 1, Replace: true})
	s.no(machine.CodeSuperseded, Finish{HashToken(old), receipt("n2", old)})
	s.install(s.boot(machine.ActionInstall))
}

func TestReceiptOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*machine.Receipt)
		boots machine.Action
	}{
		"gave up before writing": {func(r *machine.Receipt) { r.Error, r.Written, r.ReadBack = "no disk", false, false }, machine.ActionBootDisk},
		"gave up while writing":  {func(r *machine.Receipt) { r.Error = "bad chunk" }, machine.ActionWait},
		"not read back":          {func(r *machine.Receipt) { r.ReadBack = false }, machine.ActionWait},
		"another image":          {func(r *machine.Receipt) { r.Index = digest.Of([]byte("other")) }, machine.ActionWait},
		"nothing written":        {func(r *machine.Receipt) { r.Written = false }, machine.ActionBootDisk},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.arm()
			id := s.boot(machine.ActionInstall)
			s.do(Claim{HashToken(id)})
			r := receipt("n2", id)
			c.spoil(&r)
			s.do(Finish{HashToken(id), r})
			s.state(StateFailed)
			s.do(Finish{HashToken(id), r}) // the answer was lost
			if s.r.Failure == "" {
				t.Error("failed without a reason")
			}
			s.boot(c.boots)
			s.no(machine.CodeUsed, Claim{HashToken(id)})
		})
	}
}

func TestArmIsRefused(t *testing.T) {
	s := newStory(t)
	good := Arm{ID: "a", Status: cluster.StatusActive, Order: order("n2", s.now.Add(time.Hour)), MaxTries: 3}
	for name, c := range map[string]struct {
		code  machine.Code
		spoil func(*Arm)
	}{
		"design-only": {machine.CodeDesignOnly, func(a *Arm) { a.Status = cluster.StatusDesignOnly }},
		"no status":   {machine.CodeDesignOnly, func(a *Arm) { a.Status = "" }},
		"other node":  {machine.CodeOrder, func(a *Arm) { a.Order.Node = "n1" }},
		"no key":      {machine.CodeOrder, func(a *Arm) { a.ID = "" }},
		"past":        {machine.CodeOrder, func(a *Arm) { a.Order.Expires = s.now }},
		"for ever":    {machine.CodeOrder, func(a *Arm) { a.Order.Expires = s.now.Add(MaxValidity + 1) }},
		"no tries":    {machine.CodeOrder, func(a *Arm) { a.MaxTries = 0 }},
		"many tries":  {machine.CodeOrder, func(a *Arm) { a.MaxTries = MaxTries + 1 }},
		"no disk":     {machine.CodeDocument, func(a *Arm) { a.Order.System = cluster.Selector{} }},
	} {
		a := good
		c.spoil(&a)
		before := dump(t, s.r)
		s.no(c.code, a)
		if dump(t, s.r) != before {
			t.Errorf("%s: changed the record", name)
		}
	}
	s.do(good)
	before := dump(t, s.r)
	s.do(good) // a repeated write of the ledger
	if dump(t, s.r) != before {
		t.Error("the same arming twice is two")
	}
	s.r.Node, s.r.Why = "", "no node"
	s.no(machine.CodeUnbound, Arm{ID: "b", Status: cluster.StatusActive})
}

func TestArmedButNotAllowed(t *testing.T) {
	s := newStory(t)
	s.arm()
	d := DecideBoot(s.r, Policy{Status: cluster.StatusDesignOnly}, s.now)
	if d.Action != machine.ActionBootDisk || !strings.Contains(d.Reason, "design-only") {
		t.Errorf("%+v", d)
	}
	other := s.r.clone()
	other.Identity.UUID = "another-uuid"
	if d := DecideBoot(other, allowed(), s.now); d.Action != machine.ActionBootDisk || !strings.Contains(d.Reason, "another machine") {
		t.Errorf("%+v", d)
	}
	if d := s.do(Boot{Policy: allowed()}).Decision; d.Action != machine.ActionBootDisk {
		t.Errorf("an installer without a ticket: %+v", d)
	}
}

func TestInventory(t *testing.T) {
	got, err := Recognise(nil, Sighting{MACs: []cluster.MAC{"02:00:00:00:00:09"}}, nodes(), start())
	if err != nil {
		t.Fatal(err)
	}
	r := got.Record
	if d := DecideBoot(r, allowed(), start()); d.Action != machine.ActionBootDisk || r.State != StateSeen {
		t.Errorf("%+v", d)
	}
	discover := Policy{Status: cluster.StatusDesignOnly, Inventory: true}
	for range MaxProbes {
		var out Outcome
		if r, out, err = Apply(r, Boot{Policy: discover}, start()); err != nil || out.Decision.Action != machine.ActionInventory {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if d := DecideBoot(r, discover, start()); d.Action != machine.ActionBootDisk || !strings.Contains(d.Reason, "no report") {
		t.Errorf("%+v", d)
	}
	got, err = Recognise([]Record{r}, Sighting{MACs: r.MACs, Complete: true}, nodes(), start())
	if err != nil || got.Record.State != StateInventoried || got.Record.Probes != 0 {
		t.Fatalf("%+v, %v", got.Record, err)
	}
	if d := DecideBoot(got.Record, discover, start()); d.Action != machine.ActionBootDisk {
		t.Errorf("inventoried already: %+v", d)
	}
}

func TestSpentIsBounded(t *testing.T) {
	s := newStory(t)
	for range 2 * maxSpent {
		s.arm()
		s.boot(machine.ActionInstall)
		s.now = s.now.Add(time.Minute)
	}
	if len(s.r.Spent) > maxSpent {
		t.Errorf("%d dead tokens are kept", len(s.r.Spent))
	}
	if slices.ContainsFunc(s.r.Spent, func(x Spent) bool { return x.End == "" }) {
		t.Error("a dead token without a reason")
	}
}

// An answer can be lost: the start of a machine that has the seed gets it again, and
// nobody else who knows the ticket.
func TestSeedAgain(t *testing.T) {
	s := newStory(t)
	s.arm()
	id := s.boot(machine.ActionInstall)
	s.do(Claim{HashToken(id)})
	first := TakeSeed{Token: HashToken(id), Start: HashToken("first")}
	s.do(first)
	s.do(first)
	s.no(machine.CodeTaken, TakeSeed{Token: HashToken(id), Start: HashToken("second")})
	s.no(machine.CodeTaken, TakeSeed{Token: HashToken(id)})
	s.do(Finish{HashToken(id), receipt("n2", id)})
	s.no(machine.CodeUsed, first)
}
