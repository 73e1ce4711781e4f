// Package ledgertest holds what every ledger must do, whoever holds it: one
// member, or one of several. The checks talk to all members in turn.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// FreeAddress is an address on this machine that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Clock is a time without a fraction below what the ledger keeps.
func Clock() time.Time { return time.Date(2026, 5, 1, 10, 0, 0, 123000, time.UTC) }

// Record is a machine of a node, armed and half way through its install.
func Record(n int) life.Record {
	node := fmt.Sprintf("n%d", n)
	token := life.HashToken(fmt.Sprint("secret of ", node))
	order := machine.Ticket{
		Format: machine.TicketFormat, Node: node, Cluster: "c", Expires: Clock().Add(time.Hour), Index: digest.Of([]byte("i")), Key: "ssh-ed25519 A",
		System: cluster.Selector{Serial: "DISK"}, Overwrite: []string{"DISK"},
	}
	mac := cluster.MAC(fmt.Sprintf("52:54:00:00:%02x:01", n))
	return life.Record{
		Key: machine.Key("mac:" + string(mac)), MACs: []cluster.MAC{mac}, Identity: machine.Identity{Serial: "SER-" + node, UUID: "uuid-" + node},
		State: life.StateImaging, Node: node, Why: "MAC address", FirstSeen: Clock(), LastSeen: Clock().Add(time.Minute),
		Grant: &life.Grant{ID: "arming-" + node, Order: order, MaxTries: 3, Tries: 1, Issued: Clock(), Token: token, TryStart: Clock(), Claimed: Clock()},
		Spent: []life.Spent{{Token: digest.Of([]byte("old")), End: life.EndSuperseded, At: Clock()}}, Progress: &machine.Progress{Stage: machine.StageWrite, Done: 1, Total: 2},
	}
}

type suite struct {
	*testing.T
	members []*ledger.Ledger
	next    int
}

// any is the next member's turn.
func (s *suite) any() *ledger.Ledger {
	s.next++
	return s.members[s.next%len(s.members)]
}

func (s *suite) change(c ledger.Change) {
	s.Helper()
	if err := s.any().Change(s.Context(), func([]life.Record) (ledger.Change, error) { return c, nil }); err != nil {
		s.Fatal(err)
	}
}

// Run checks a ledger that is empty. The members are all of the same ledger.
func Run(t *testing.T, members ...*ledger.Ledger) {
	for _, check := range []struct {
		name string
		run  func(*suite)
	}{
		{"machines", (*suite).machines}, {"names", (*suite).names}, {"papers", (*suite).papers}, {"events", (*suite).events}, {"runs", (*suite).runs}, {"clusters", (*suite).clusters},
		{"nothing by halves", (*suite).halves}, {"once", (*suite).once}, {"one live ticket", (*suite).liveTicket}, {"forgotten", (*suite).forgotten},
		{"nobody gets between", (*suite).between}, {"readers of the log miss nothing", (*suite).readers}, {"gives up", (*suite).givesUp},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(&suite{T: t, members: members}) })
	}
}

func (s *suite) machines() {
	want := []life.Record{Record(1), Record(2), {Key: "mac:02:00:00:00:00:09", State: life.StateSeen, FirstSeen: Clock(), LastSeen: Clock()}}
	s.change(ledger.Change{Put: want})
	slices.SortFunc(want, func(a, b life.Record) int { return strings.Compare(string(a.Key), string(b.Key)) })
	for range s.members {
		got, err := s.any().Machines(s.Context())
		if err != nil || !reflect.DeepEqual(got, want) {
			s.Fatalf("%+v, %v\nwant %+v", got, err, want)
		}
	}
	if _, err := s.any().Machine(s.Context(), "mac:nobody"); !errors.Is(err, ledger.ErrUnknown) {
		s.Errorf("nobody: %v", err)
	}
	moved := Record(2)
	moved.Node, moved.Why, moved.Grant = "n7", "another profile", nil
	s.change(ledger.Change{Put: []life.Record{moved}})
	history, err := s.any().Bindings(s.Context(), "n7")
	if err != nil || len(history) != 2 || history[0].Node != "n2" || history[1].Node != "n7" || history[1].Why != moved.Why {
		s.Errorf("%+v, %v", history, err)
	}
}

func (s *suite) names() {
	r := Record(3)
	r.Identity.Serial = "Ser-X3"
	s.change(ledger.Change{Put: []life.Record{r}})
	for _, word := range []string{string(r.Key), "52-54-00-00-03-01", "5254.0000.0301", "ser-x3", "UUID-n3", "n3"} {
		if got, err := s.any().Find(s.Context(), word); err != nil || len(got) != 1 || got[0].Key != r.Key {
			s.Errorf("%s: %d machines, %v", word, len(got), err)
		}
	}
	r.Identity.Serial, r.MACs = "SER-Y3", append(r.MACs, "02:00:00:00:03:02")
	r.Grant.Token = life.HashToken("another")
	s.change(ledger.Change{Put: []life.Record{r}})
	for word, want := range map[string]int{"ser-x3": 0, "SER-Y3": 1, "02:00:00:00:03:02": 1, "": 0, "' OR 1=1 --": 0} {
		if got, err := s.any().Find(s.Context(), word); err != nil || len(got) != want {
			s.Errorf("%s: %d machines, %v", word, len(got), err)
		}
	}
	for _, secret := range []string{"another", "secret of n3"} { // the second one is dead, and found
		if got, err := s.any().ByToken(s.Context(), life.HashToken(secret)); err != nil || got.Key != r.Key {
			s.Errorf("%s: %s, %v", secret, got.Key, err)
		}
	}
	if _, err := s.any().ByToken(s.Context(), life.HashToken("guessed")); !errors.Is(err, ledger.ErrUnknown) {
		s.Errorf("guessed: %v", err)
	}
}

func (s *suite) papers() {
	key := Record(1).Key
	if report, err := s.any().Report(s.Context(), key); report != nil || err != nil {
		s.Errorf("%+v, %v", report, err)
	}
	report := machine.Report{Format: machine.ReportFormat, Memory: 1 << 34, Clock: Clock()}
	for i := range 64 {
		report.Disks = append(report.Disks, machine.Disk{Name: fmt.Sprint("sd", i), Model: strings.Repeat("ü", 100), Content: make([]machine.Signature, 40)})
	}
	secret := strings.Repeat("5e", 32)
	receipt := machine.Receipt{Format: machine.ReceiptFormat, Ticket: secret, Node: "n1", Bytes: 7, Started: Clock(), Finished: Clock()}
	later := receipt
	later.Bytes = 8
	for _, r := range []machine.Receipt{receipt, later, receipt} {
		s.change(ledger.Change{Reports: map[machine.Key]machine.Report{key: report}, Receipts: map[machine.Key]machine.Receipt{key: r}})
	}
	got, err := s.any().Report(s.Context(), key)
	if err != nil || !reflect.DeepEqual(*got, report) {
		s.Errorf("%+v, %v", got, err)
	}
	last, err := s.any().Receipt(s.Context(), key)
	if err != nil || last.Bytes != 8 || last.Ticket != "" {
		s.Errorf("%+v, %v: the last new one is wanted, without its secret", last, err)
	}
}

func (s *suite) events() {
	before, err := s.any().LastEvent(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	want := []ledger.Event{{At: Clock(), Kind: "boot", Machine: "mac:x", Node: "n1", Text: "ä'; --"}, {At: Clock(), Kind: "arm", Code: "busy", Text: "b"}}
	for range 2 { // the second time is a repetition
		if err := s.any().Note(s.Context(), "note-1", want...); err != nil {
			s.Fatal(err)
		}
	}
	s.change(ledger.Change{Events: []ledger.Event{{At: Clock(), Kind: "late", Text: "c"}}})
	got, err := s.any().Events(s.Context(), before, 100)
	if err != nil || len(got) != 3 || got[2].Kind != "late" {
		s.Fatalf("%+v, %v", got, err)
	}
	for i, e := range want {
		e.Seq = got[i].Seq
		if got[i] != e {
			s.Errorf("%+v became %+v", e, got[i])
		}
	}
	page, err := s.any().Events(s.Context(), got[0].Seq, 1)
	last, err2 := s.any().LastEvent(s.Context())
	if err != nil || err2 != nil || len(page) != 1 || page[0].Seq != got[1].Seq || last != got[2].Seq {
		s.Errorf("%+v, %d, %v, %v", page, last, err, err2)
	}
}

func (s *suite) runs() {
	r := ledger.Run{ID: "run-1", Story: "rebuild", Subject: "n2", Plan: digest.Of([]byte("plan")), Owner: "me", Started: Clock()}
	again := r
	again.Owner = "somebody else"
	for _, v := range []ledger.Run{r, again} {
		if err := s.any().StartRun(s.Context(), v); err != nil {
			s.Fatal(err)
		}
	}
	for _, step := range []ledger.Step{{Name: "drain", State: "running", At: Clock()}, {Name: "drain", State: "done", At: Clock(), Note: "took a while"}, {Name: "arm", State: "running", At: Clock().Add(1000)}} {
		if err := s.any().SetStep(s.Context(), r.ID, step); err != nil {
			s.Fatal(err)
		}
	}
	for _, outcome := range []string{"done", "failed"} { // what ended does not end again
		if err := s.any().EndRun(s.Context(), r.ID, outcome, Clock()); err != nil {
			s.Fatal(err)
		}
	}
	got, err := s.any().Run(s.Context(), r.ID)
	r.Ended, r.Outcome = Clock(), "done"
	r.Steps = []ledger.Step{{Name: "drain", State: "done", At: Clock(), Note: "took a while"}, {Name: "arm", State: "running", At: Clock().Add(1000)}}
	if err != nil || !reflect.DeepEqual(got, r) {
		s.Errorf("%+v, %v\nwant %+v", got, err, r)
	}
	s.filters(r)
	_, err = s.any().Run(s.Context(), "none")
	for _, err := range []error{err, s.any().EndRun(s.Context(), "none", "", Clock()), s.any().SetStep(s.Context(), "none", ledger.Step{Name: "x"})} {
		if !errors.Is(err, ledger.ErrUnknown) {
			s.Errorf("a run that was never started: %v", err)
		}
	}
}

// halves: an error of the decision, or of the last of many writes, leaves nothing.
func (s *suite) halves() {
	before, err := s.any().Machines(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	stop := errors.New("changed my mind")
	err = s.any().Change(s.Context(), func([]life.Record) (ledger.Change, error) {
		return ledger.Change{Put: []life.Record{Record(50)}}, stop
	})
	if !errors.Is(err, stop) {
		s.Errorf("the decision's own error is %v", err)
	}
	bad := Record(51)
	bad.FirstSeen = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has no such year
	err = s.any().Change(s.Context(), func([]life.Record) (ledger.Change, error) {
		return ledger.Change{Put: []life.Record{Record(52), bad}, Events: []ledger.Event{{Kind: "half"}}}, nil
	})
	after, err2 := s.any().Machines(s.Context())
	if err == nil || err2 != nil || !reflect.DeepEqual(before, after) {
		s.Errorf("%v, %v: %d machines became %d", err, err2, len(before), len(after))
	}
}

func (s *suite) once() {
	calls := 0
	for i := range 3 {
		repeated, err := s.any().ChangeOnce(s.Context(), "key-once", func([]life.Record) (ledger.Change, error) {
			calls++
			return ledger.Change{Events: []ledger.Event{{Kind: "once"}}}, nil
		})
		if err != nil || repeated != (i > 0) {
			s.Fatalf("%v, %v", repeated, err)
		}
	}
	if calls != 1 {
		s.Errorf("decided %d times", calls)
	}
}

// liveTicket: two machines of one node cannot both be armed, whatever a program does.
func (s *suite) liveTicket() {
	a, b := Record(20), Record(21)
	b.Node, b.Grant.Order.Node = "n20", "n20"
	s.change(ledger.Change{Put: []life.Record{a}})
	err := s.any().Change(s.Context(), func([]life.Record) (ledger.Change, error) { return ledger.Change{Put: []life.Record{b}}, nil })
	if err == nil || errors.Is(err, ledger.ErrNoLeader) {
		s.Fatalf("two live tickets for one node: %v", err)
	}
	a.Grant.End = life.EndDisarmed
	s.change(ledger.Change{Put: []life.Record{b, a}}) // in one change, in whatever order
	b.Grant = &life.Grant{ID: "arming-again", Order: b.Grant.Order, MaxTries: 1}
	s.change(ledger.Change{Put: []life.Record{b}})
}

func (s *suite) forgotten() {
	r := Record(30)
	s.change(ledger.Change{Put: []life.Record{r}, Reports: map[machine.Key]machine.Report{r.Key: {Format: machine.ReportFormat}}})
	s.change(ledger.Change{Gone: []machine.Key{r.Key}})
	_, err := s.any().Machine(s.Context(), r.Key)
	_, err2 := s.any().ByToken(s.Context(), r.Grant.Token)
	report, err3 := s.any().Report(s.Context(), r.Key)
	found, err4 := s.any().Find(s.Context(), "SER-n30")
	if !errors.Is(err, ledger.ErrUnknown) || !errors.Is(err2, ledger.ErrUnknown) || report != nil || err3 != nil || len(found) != 0 || err4 != nil {
		s.Errorf("%v, %v, %v, %v, %v, %v", err, err2, report, err3, found, err4)
	}
	s.change(ledger.Change{Put: []life.Record{r}}) // its ticket's place is free again
}

// between: many writers of all members change one record; no change is lost.
func (s *suite) between() {
	r := life.Record{Key: "mac:counter", State: life.StateSeen}
	s.change(ledger.Change{Put: []life.Record{r}})
	const writers, times = 3, 8
	var wait sync.WaitGroup
	for _, m := range s.members {
		for range writers {
			wait.Go(func() {
				for range times {
					if err := m.Change(s.Context(), count); err != nil {
						s.Error(err)
					}
				}
			})
		}
	}
	wait.Wait()
	got, err := s.any().Machine(s.Context(), r.Key)
	if want := len(s.members) * writers * times; err != nil || got.Probes != want {
		s.Errorf("%d of %d changes are there, %v", got.Probes, want, err)
	}
}

func count(fleet []life.Record) (ledger.Change, error) {
	for _, r := range fleet {
		if r.Key == "mac:counter" {
			r.Probes++
			return ledger.Change{Put: []life.Record{r}, Events: []ledger.Event{{Kind: "count", Text: fmt.Sprint(r.Probes)}}}, nil
		}
	}
	return ledger.Change{}, errors.New("the counter is gone")
}

// readers: who follows the log from a cursor while others write sees every event
// once, in order.
func (s *suite) readers() {
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	from, err := s.any().LastEvent(ctx)
	if err != nil {
		s.Fatal(err)
	}
	const each = 10
	for i, m := range s.members {
		go func() {
			for j := range each {
				if err := m.Note(ctx, fmt.Sprint("reader-", i, j), ledger.Event{Kind: "read", Text: fmt.Sprint(i, " ", j)}); err != nil && ctx.Err() == nil {
					s.Error(err)
				}
			}
		}()
	}
	seen, cursor := map[string]int{}, from
	for deadline := time.Now().Add(time.Minute); len(seen) < each*len(s.members) && time.Now().Before(deadline); {
		got, err := s.any().Events(ctx, cursor, 3)
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range got {
			if e.Seq <= cursor {
				s.Fatalf("event %d after %d", e.Seq, cursor)
			}
			cursor = e.Seq
			seen[e.Text]++
		}
	}
	all, err := s.any().Events(ctx, from, 1000)
	if err != nil || len(all) != each*len(s.members) || len(seen) != len(all) {
		s.Errorf("%d events, %d seen, %v", len(all), len(seen), err)
	}
}

func (s *suite) givesUp() {
	ctx, stop := context.WithCancel(s.Context())
	stop()
	done := make(chan error, 1)
	go func() {
		_, err := s.any().Machines(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			s.Error("answered though nobody waits")
		}
	case <-time.After(time.Minute):
		s.Error("goes on though nobody waits")
	}
}
