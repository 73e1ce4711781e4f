package httpd

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// A machine is imaged exactly once: from its first boot to its hundredth after.
func TestOneInstall(t *testing.T) { onBothLedgers(t, testOneInstall) }

func testOneInstall(t *testing.T, l *lab) {
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" || !strings.HasSuffix(s, "\nexit 1\n") {
		t.Fatalf("a machine that nobody armed:\n%s", s)
	}
	token, ticket := l.start()
	if ticket.Node != "n1" || ticket.ID != token || ticket.Index != desktest.Image().Index || ticket.System.Serial != "slipway-n1-system" {
		t.Errorf("%+v", ticket)
	}
	seed := want[machine.Seed](l, "GET", machine.PathSeed, token, nil)
	if !strings.Contains(seed["meta-data"], "n1") || len(seed) != 4 {
		t.Errorf("%v", seed)
	}
	l.refused(http.StatusGone, "taken", "handed out", "GET", machine.PathSeed, token, nil)
	want[struct{}](l, "POST", machine.PathProgress, token, machine.Progress{Stage: machine.StageWrite, Done: 50, Total: 200, Rate: 10})
	if m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil); m.Progress == nil || m.Progress.Percent != 25 || m.Progress.Left != 16 {
		t.Errorf("%+v", m.Progress)
	}
	receipt := desktest.Receipt(ticket, "sn-1")
	first := want[machine.Reply](l, "POST", machine.PathReceipt, token, receipt)
	again := want[machine.Reply](l, "POST", machine.PathReceipt, token, receipt)
	if first.Action != machine.ActionBootDisk || first != again {
		t.Errorf("%+v, then %+v", first, again)
	}
	for range 100 {
		if s := l.boot(desktest.MAC1, "sn-1"); !strings.HasSuffix(s, "\nexit 1\n") || strings.Contains(s, "kernel") {
			t.Fatalf("an installed machine got\n%s", s)
		}
	}
	l.refused(http.StatusGone, "used", "works only once", "GET", machine.PathTicket, token, nil)
	l.refused(http.StatusConflict, "used", "works only once", "POST", machine.PathProgress, token, machine.Progress{Stage: machine.StageWrite})
	want[struct{}](l, "POST", machine.PathHealth, token, machine.Ready{Node: "n1", MachineID: "abc", Slot: "a", HostKeys: []string{"ssh-ed25519 AAAA"}})
	m := want[desk.Machine](l, "GET", "/api/v1/machines/"+desktest.MAC1, operatorToken, nil)
	if m.State != life.StateInstalled || m.Ready == nil || m.Receipt == nil || m.Receipt.Ticket != "" || !slices.Equal(m.HostKeys, []string{"ssh-ed25519 AAAA"}) {
		t.Errorf("%+v", m)
	}
}

// No secret, nor anything that one could be made of, leaves through what
// operators and browsers see.
func TestNoSecretInViews(t *testing.T) {
	l := newLab(t)
	token, ticket := l.start()
	want[machine.Reply](l, "POST", machine.PathReceipt, token, desktest.Receipt(ticket, "sn-1"))
	_, machines := l.do("GET", "/api/v1/machines", operatorToken, nil)
	_, events := l.do("GET", "/api/v1/events", operatorToken, nil)
	for name, text := range map[string]string{"machines": machines, "events": events, "log": l.log.String()} {
		if strings.Contains(text, token) || strings.Contains(text, life.HashToken(token).Hex()) || strings.Contains(text, operatorToken) {
			t.Errorf("%s holds a secret: %s", name, text)
		}
	}
}

// Each boot of an armed machine gets a ticket of its own, and ends the one before.
func TestNewBootEndsTheOldTicket(t *testing.T) { onBothLedgers(t, testNewBootEndsTheOldTicket) }

func testNewBootEndsTheOldTicket(t *testing.T, l *lab) {
	old, _ := l.start()
	l.clock.Pass(time.Minute)
	fresh := ticketIn(l.boot(desktest.MAC1, "sn-1"))
	if fresh == "" || fresh == old {
		t.Fatalf("%q after %q", fresh, old)
	}
	l.refused(http.StatusConflict, "superseded", "replaced", "POST", machine.PathProgress, old, machine.Progress{Stage: machine.StageWrite})
	l.refused(http.StatusGone, "superseded", "replaced", "GET", machine.PathSeed, old, nil)
}

// A machine that is started into the installer again and again and never comes
// back is given up, and waits for its operator instead of booting a half disk.
func TestTriesEnd(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{Tries: 2})
	for range 2 {
		token := ticketIn(l.boot(desktest.MAC1, "sn-1"))
		want[machine.Ticket](l, "GET", machine.PathTicket, token, nil)
		l.clock.Pass(time.Minute)
	}
	s := l.boot(desktest.MAC1, "sn-1")
	if ticketIn(s) != "" || !strings.Contains(s, "sleep 30") || !strings.Contains(s, "chain --replace") {
		t.Errorf("after the last try:\n%s", s)
	}
	m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil)
	if m.State != life.StateFailed || m.Why == "" || !strings.Contains(m.Hint, "pxed arm n1") {
		t.Errorf("%+v", m)
	}
}

func TestTicketsThatDoNotWork(t *testing.T) {
	l := newLab(t)
	paths := []struct {
		method, path string
		body         any
	}{
		{"GET", machine.PathTicket, nil}, {"GET", machine.PathSeed, nil}, {"POST", machine.PathProgress, machine.Progress{Stage: machine.StageWrite}},
		{"POST", machine.PathReceipt, desktest.Receipt(machine.Ticket{ID: strings.Repeat("ab", 32), Node: "n1", Index: desktest.Image().Index, System: cluster.Selector{Serial: "s"}}, "sn-1")},
		{"POST", machine.PathHealth, machine.Ready{Node: "n1"}},
	}
	for _, p := range paths {
		l.refused(http.StatusUnauthorized, "none", "needs a ticket", p.method, p.path, "", p.body)
		l.refused(http.StatusUnauthorized, "wrong", "not known", p.method, p.path, strings.Repeat("ab", 32), p.body)
		l.refused(http.StatusUnauthorized, "wrong", "not known", p.method, p.path, operatorToken, p.body)
	}
	token, ticket := l.start()
	l.clock.Pass(25 * time.Hour)
	l.refused(http.StatusGone, "expired", "expired", "GET", machine.PathTicket, token, nil)
	l.refused(http.StatusGone, "expired", "expired", "POST", machine.PathReceipt, token, desktest.Receipt(ticket, "sn-1"))
}

func TestDisarmStopsAnInstall(t *testing.T) {
	l := newLab(t)
	token, _ := l.start()
	want[desk.Machine](l, "POST", "/api/v1/nodes/n1/disarm", operatorToken, nil)
	l.refused(http.StatusConflict, "superseded", "taken back", "POST", machine.PathProgress, token, machine.Progress{Stage: machine.StageWrite})
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" {
		t.Errorf("a disarmed machine got\n%s", s)
	}
}

// Two receipts at once: one install, whatever the order, and no failure after it.
func TestReceiptsRace(t *testing.T) { onBothLedgers(t, testReceiptsRace) }

func testReceiptsRace(t *testing.T, l *lab) {
	token, ticket := l.start()
	good, other := desktest.Receipt(ticket, "sn-1"), desktest.Receipt(ticket, "sn-1")
	other.Error, other.ReadBack = "the disk broke", false
	status := make([]int, 8)
	var wg sync.WaitGroup
	for i := range status {
		wg.Go(func() {
			r := good
			if i%2 == 1 {
				r = other
			}
			status[i], _ = l.do("POST", machine.PathReceipt, token, r)
		})
	}
	wg.Wait()
	ok := [2]int{}
	for i, s := range status {
		switch s {
		case http.StatusOK:
			ok[i%2]++
		case http.StatusGone:
		default:
			t.Errorf("status %d", s)
		}
	}
	if (ok[0] == 0) == (ok[1] == 0) {
		t.Errorf("%d good and %d bad receipts were taken", ok[0], ok[1])
	}
}

// Two boots at once: only one of the tickets works.
func TestBootsRace(t *testing.T) { onBothLedgers(t, testBootsRace) }

func testBootsRace(t *testing.T, l *lab) {
	l.arm("n1", desk.Order{})
	scripts := make([]string, 6)
	var wg sync.WaitGroup
	for i := range scripts {
		wg.Go(func() { scripts[i] = l.boot(desktest.MAC1, "sn-1") })
	}
	wg.Wait()
	works := 0
	for _, s := range scripts {
		if status, _ := l.do("GET", machine.PathTicket, ticketIn(s), nil); status == http.StatusOK {
			works++
		}
	}
	if works != 1 {
		t.Errorf("%d tickets work", works)
	}
}

// A receipt of failure carries the reasons of the disk selection to everybody.
func TestFailedReceiptExplains(t *testing.T) {
	l := newLab(t)
	token, ticket := l.start()
	r := desktest.Receipt(ticket, "sn-1")
	r.Written, r.ReadBack, r.Index = false, false, digest.Digest{}
	r.Error = "no disk may be written"
	r.Reasons = []string{"vda (slipway-n1-system) holds ntfs “Photos”, which nobody allowed to destroy"}
	r.Disk.Content = []machine.Signature{{Type: "ntfs", Label: "Photos"}}
	reply := want[machine.Reply](l, "POST", machine.PathReceipt, token, r)
	if reply.Action != machine.ActionPowerOff || !strings.Contains(reply.Message, r.Error) {
		t.Errorf("%+v", reply)
	}
	m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil)
	if m.State != life.StateFailed || len(m.Reasons) != 1 || !strings.Contains(m.Hint, "--overwrite slipway-n1-system") {
		t.Errorf("%+v", m)
	}
	l.inEvents("", "Photos")
	if !strings.Contains(l.log.String(), "Photos") {
		t.Errorf("the reason is not in the log: %s", l.log)
	}
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) != "" {
		t.Errorf("a failed machine is started again:\n%s", s)
	}
}

// A machine that lost its power and comes back has written nothing in its new try.
func TestNewTryHasNoOldProgress(t *testing.T) {
	l := newLab(t)
	token, _ := l.start()
	want[struct{}](l, "POST", machine.PathProgress, token, machine.Progress{Stage: machine.StageWrite, Done: 40, Total: 100})
	if m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil); m.Progress == nil || m.Progress.Percent != 40 {
		t.Fatalf("progress %+v", m.Progress)
	}
	if s := l.boot(desktest.MAC1, "sn-1"); ticketIn(s) == "" {
		t.Fatalf("no second try:\n%s", s)
	}
	if m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil); m.Progress != nil {
		t.Errorf("the second try shows the progress of the first: %+v", m.Progress)
	}
}

// A report with a ticket that has ended is answered with the reason, for the
// console, and everybody can see that it was.
func TestReportWithADeadTicket(t *testing.T) {
	l := newLab(t)
	token, _ := l.start()
	want[desk.Machine](l, "POST", "/api/v1/nodes/n1/disarm", operatorToken, nil)
	reply := want[machine.Reply](l, "POST", machine.PathReport, token, desktest.Report(desktest.MAC1, "sn-1"))
	if reply.Action != machine.ActionBootDisk || !strings.Contains(reply.Message, "taken back") {
		t.Errorf("%+v", reply)
	}
	l.inEvents("superseded", "taken back")
	if m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil); m.Turned == nil || m.Turned.Code != "superseded" || !strings.Contains(m.Turned.Reason, "taken back") {
		t.Errorf("the operator is not told of it: %+v", m.Turned)
	}
	if m := l.arm("n1", desk.Order{}); m.Turned != nil {
		t.Errorf("armed, and still %+v", m.Turned)
	}
	if !strings.Contains(l.log.String(), "gets=boot-disk why=\"ticket: the ticket was taken back") {
		t.Errorf("not in the log: %s", l.log)
	}
	if status, text := l.do("POST", machine.PathReport, "", `{"format": 3}`); status != http.StatusBadRequest || !strings.Contains(text, "not a valid document") {
		t.Errorf("%d %s", status, text)
	}
	l.refused(http.StatusBadRequest, "document", "format", "POST", machine.PathReport, "", machine.Report{})
}
