package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// operatorRoutes are all that operators can ask for.
var operatorRoutes = []string{
	"GET /api/v1/machines", "GET /api/v1/machines/n1", "POST /api/v1/nodes/n1/arm", "POST /api/v1/nodes/n1/rearm", "POST /api/v1/nodes/n1/disarm",
	"POST /api/v1/nodes/n1/wake", "POST /api/v1/machines/n1/bind", "DELETE /api/v1/machines/n1", "GET /api/v1/events", "GET /api/v1/status",
	"GET /api/v1/members", "DELETE /api/v1/members/10.0.0.1:9000",
}

func TestOperatorsNeedTheToken(t *testing.T) {
	l := newLab(t)
	for _, route := range operatorRoutes {
		method, path, _ := strings.Cut(route, " ")
		for _, token := range []string{"", "wrong", operatorToken + "x", strings.ToUpper(operatorToken)} {
			status, text := l.do(method, path, token, nil)
			var e Error
			if err := json.Unmarshal([]byte(text), &e); err != nil || status != http.StatusUnauthorized || e.Code != "unauthorized" || e.Hint == "" {
				t.Errorf("%s with token %q: %d %s", route, token, status, text)
			}
		}
	}
	l.server.token = ""
	if status, _ := l.do("GET", "/api/v1/status", "", nil); status != http.StatusUnauthorized {
		t.Errorf("without a token nobody may come in by none: %d", status)
	}
}

func TestArmIsCheckedAndRemembered(t *testing.T) {
	l := newLab(t)
	m := l.arm("n2", desk.Order{Seconds: 900, Overwrite: []string{"old-disk"}, Sanitize: machine.SanitizeAuto, Data: cluster.PolicyWipe, ID: "x1"})
	if m.State != life.StateArmed || m.Grant == nil || !m.Grant.Live || m.Grant.Sanitize != machine.SanitizeAuto || m.Grant.Data[0].Policy != cluster.PolicyWipe {
		t.Errorf("%+v", m)
	}
	if again := l.arm("n2", desk.Order{ID: "x1", Seconds: 60}); !again.Grant.Expires.Equal(m.Grant.Expires) {
		t.Errorf("the same arming again changed it: %+v", again.Grant)
	}
	l.refused(http.StatusBadRequest, "order", "tries", "POST", "/api/v1/nodes/n2/arm", operatorToken, desk.Order{Tries: 99})
	l.refused(http.StatusBadRequest, "order", "longer", "POST", "/api/v1/nodes/n2/arm", operatorToken, desk.Order{Seconds: 1e9})
	l.refused(http.StatusNotFound, "no-such-node", "n9", "POST", "/api/v1/nodes/n9/arm", operatorToken, desk.Order{})
	for _, body := range []string{"", "{", `{"unknown": 1}`, `[]`, `{} {}`, `{"seconds": "3"}`} {
		if status, text := l.do("POST", "/api/v1/nodes/n2/arm", operatorToken, body); status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", body, status, text)
		}
	}
	if status, _ := l.do("POST", "/api/v1/nodes/n2/arm", operatorToken, `{"id":"`+strings.Repeat("a", 1<<20)+`"}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d", status)
	}
}

func TestRearmRepeatsTheOrder(t *testing.T) {
	l := newLab(t)
	l.refused(http.StatusUnauthorized, "none", "never armed", "POST", "/api/v1/nodes/n1/rearm", operatorToken, nil)
	l.arm("n1", desk.Order{Overwrite: []string{"old"}, Data: cluster.PolicyWipe})
	want[desk.Machine](l, "POST", "/api/v1/nodes/n1/disarm", operatorToken, nil)
	m := want[desk.Machine](l, "POST", "/api/v1/nodes/n1/rearm", operatorToken, nil)
	if !m.Grant.Live || m.Grant.Overwrite[0] != "old" || m.Grant.Data[0].Policy != cluster.PolicyWipe {
		t.Errorf("%+v", m.Grant)
	}
}

func TestArmingExpires(t *testing.T) {
	l := newLab(t)
	l.arm("n1", desk.Order{Seconds: 600})
	l.clock.Pass(11 * time.Minute)
	if err := l.desk.Tick(l.Context()); err != nil {
		t.Fatal(err)
	}
	m := want[desk.Machine](l, "GET", "/api/v1/machines/n1", operatorToken, nil)
	if m.State != life.StateBound || m.Grant.Live || m.Grant.End != life.EndExpired {
		t.Errorf("%+v %+v", m, m.Grant)
	}
	l.inEvents("", "expired")
}

func TestBindAndForget(t *testing.T) {
	l := newLab(t)
	l.boot(desktest.Stranger, "x-1")
	l.refused(http.StatusConflict, "unbound", "is not n1", "POST", "/api/v1/machines/"+desktest.Stranger+"/bind", operatorToken, map[string]string{"node": "n1"})
	l.boot(desktest.MAC1, "sn-1")
	m := want[desk.Machine](l, "POST", "/api/v1/machines/sn-1/bind", operatorToken, map[string]string{"node": "n1"})
	if m.Node != "n1" {
		t.Errorf("%+v", m)
	}
	want[struct{}](l, "DELETE", "/api/v1/machines/"+desktest.Stranger, operatorToken, nil)
	l.refused(http.StatusNotFound, "no-such-machine", desktest.Stranger, "DELETE", "/api/v1/machines/"+desktest.Stranger, operatorToken, nil)
	l.arm("n1", desk.Order{})
	l.refused(http.StatusConflict, "busy", "armed", "DELETE", "/api/v1/machines/n1", operatorToken, nil)
}

// When one of two twins is forgotten, the other may go on.
func TestForgettingATwinFreesTheOther(t *testing.T) {
	l := newLab(t)
	l.boot(desktest.MAC1, "sn-1")
	l.boot(desktest.MAC1, "sn-2")
	l.refused(http.StatusConflict, "conflict", "two machines", "POST", "/api/v1/nodes/n1/arm", operatorToken, desk.Order{})
	want[struct{}](l, "DELETE", "/api/v1/machines/sn-2", operatorToken, nil)
	l.arm("n1", desk.Order{})
	if ticketIn(l.boot(desktest.MAC1, "sn-1")) == "" {
		t.Error("the machine that is left is still refused")
	}
}

func TestWake(t *testing.T) {
	var woken []cluster.MAC
	l := newLab(t, func(d *desk.Options, _ *Options) {
		d.Wake = func(_ context.Context, mac cluster.MAC) error { woken = append(woken, mac); return nil }
	})
	sent := want[struct{ Sent []string }](l, "POST", "/api/v1/nodes/n3/wake", operatorToken, nil)
	if len(woken) != 1 || woken[0] != desktest.MAC3 || sent.Sent[0] != desktest.MAC3 {
		t.Errorf("%v, %v", woken, sent)
	}
}

func TestMachinesListsWhatIsExpected(t *testing.T) {
	l := newLab(t)
	l.boot(desktest.Stranger, "")
	l.boot(desktest.MAC2, "sn-2")
	got := want[struct{ Machines []desk.Machine }](l, "GET", "/api/v1/machines", operatorToken, nil).Machines
	var line []string
	for _, m := range got {
		line = append(line, m.Node+"/"+string(m.State))
	}
	if s := strings.Join(line, " "); s != "n1/expected n2/bound n3/expected /seen" {
		t.Error(s)
	}
}

// Over the unix socket the kernel says who asks.
func TestSocketNeedsNoToken(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := HTTPServer(l.server, l.log.logger())
	go func() { _ = srv.Serve(listener) }()
	defer srv.Close()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer c.CloseIdleConnections()
	answer, err := c.Get("http://pxed/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var st desk.Status
	if err := json.NewDecoder(answer.Body).Decode(&st); err != nil || answer.StatusCode != http.StatusOK || st.Environment != "lab" || len(st.Nodes) != 3 {
		t.Errorf("%s %+v %v", answer.Status, st, err)
	}
}

func TestTooManyRequestsOfOneAddress(t *testing.T) {
	now := desktest.NewClock()
	limit := newLimiter(now.Now)
	l := newLab(t)
	l.server.limit = limit
	many := 0
	for range burst + 20 {
		if status, _ := l.do("GET", machine.PathTicket, "x", nil); status == http.StatusTooManyRequests {
			many++
		}
	}
	if many != 20 {
		t.Errorf("%d of 20 were turned away", many)
	}
	// iPXE knows no status: what is no script stops it at a prompt.
	if status, script := l.do("GET", machine.PathBoot+"?mac="+desktest.MAC1, "", nil); status != http.StatusOK || !strings.HasPrefix(script, header) || !strings.Contains(script, "sleep 5\nchain") {
		t.Errorf("a machine that asks too often gets %d\n%s", status, script)
	}
	if status, _ := l.do("GET", "/api/v1/status", operatorToken, nil); status != http.StatusOK {
		t.Errorf("the operator is turned away: %d", status)
	}
	now.Pass(time.Minute)
	if status, _ := l.do("GET", machine.PathTicket, "x", nil); status != http.StatusUnauthorized {
		t.Errorf("after a minute: %d", status)
	}
}

// fakeMembers is a ledger of three, the third of which is dead.
type fakeMembers struct{ gone []string }

func (f *fakeMembers) Members(context.Context) ([]desk.Member, error) {
	all := []desk.Member{{Address: "10.0.0.1:9000", Role: "voter", Leader: true, Self: true, Answers: true}, {Address: "10.0.0.2:9000", Role: "voter", Answers: true}}
	if len(f.gone) == 0 {
		all = append(all, desk.Member{Address: "10.0.0.3:9000", Role: "voter"})
	}
	return all, nil
}

func (f *fakeMembers) Remove(_ context.Context, address string) error {
	switch address {
	case "10.0.0.3:9000":
		f.gone = append(f.gone, address)
		return nil
	case "10.0.0.2:9000":
		return &machine.Refusal{Code: desk.CodeStays, Reason: "it is alive", Hint: "stop it first"}
	}
	return &machine.Refusal{Code: desk.CodeNoMember, Reason: "not in the ledger", Hint: "its members are …"}
}

func TestMembers(t *testing.T) {
	fake := &fakeMembers{}
	l := newLab(t, func(d *desk.Options, _ *Options) { d.Members = fake })
	type members struct{ Members []desk.Member }
	if got := want[members](l, "GET", "/api/v1/members", operatorToken, nil); len(got.Members) != 3 || !got.Members[0].Leader || got.Members[2].Answers {
		t.Errorf("%+v", got)
	}
	l.refused(http.StatusConflict, "member-stays", "alive", "DELETE", "/api/v1/members/10.0.0.2:9000", operatorToken, nil)
	l.refused(http.StatusNotFound, "no-such-member", "not in the ledger", "DELETE", "/api/v1/members/10.0.0.9:9000", operatorToken, nil)
	if got := want[members](l, "DELETE", "/api/v1/members/10.0.0.3:9000", operatorToken, nil); len(got.Members) != 2 || len(fake.gone) != 1 {
		t.Errorf("%+v", got)
	}
	l.inEvents("", "10.0.0.3:9000 is no member of the ledger any more")
	l.inEvents("member-stays", "alive")

	alone := newLab(t)
	if status, text := alone.do("GET", "/api/v1/members", operatorToken, nil); status != http.StatusBadRequest || !strings.Contains(text, "no members") {
		t.Errorf("%d %s", status, text)
	}
}

// Whatever is asked for, the answer is one that a program understands.
func TestUnknownPathsAndMethods(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct {
		method, path, allow string
		status              int
	}{
		{"GET", "/nowhere", "", http.StatusNotFound},
		{"GET", "/api/v1/machines/", "", http.StatusNotFound},
		{"POST", "/api/v2/machines", "", http.StatusNotFound},
		{"GET", "/api/v1/nodes/n1/arm", "POST", http.StatusMethodNotAllowed},
		{"PUT", "/api/v1/machines/n1", "GET, DELETE", http.StatusMethodNotAllowed},
		{"DELETE", machine.PathBoot, "GET", http.StatusMethodNotAllowed},
		{"GET", machine.PathReceipt, "POST", http.StatusMethodNotAllowed},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, l.url+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := l.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var e Error
		err = json.NewDecoder(answer.Body).Decode(&e)
		answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || e.Error == "" || e.Hint == "" || e.Code == "" || answer.Header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d, Allow %q, %+v, %v", tt.method, tt.path, answer.StatusCode, answer.Header.Get("Allow"), e, err)
		}
	}
}

// The hint of who could not do it comes through.
func TestErrorsKeepTheirHint(t *testing.T) {
	l := newLab(t, func(d *desk.Options, _ *Options) {
		d.Wake = func(context.Context, cluster.MAC) error {
			return diag.WithHint(errors.New("eth7 is gone"), "plug it in")
		}
	})
	status, text := l.do("POST", "/api/v1/nodes/n1/wake", operatorToken, nil)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "eth7 is gone") || !strings.Contains(text, `"hint":"plug it in"`) {
		t.Errorf("%d %s", status, text)
	}
}

// Arming looks at what the profile says now, not at what it said when the machine was
// last heard of: pxed was restarted with another profile, and both machines are silent.
func TestArmingAfterTheProfileHasChanged(t *testing.T) {
	before := newLab(t)
	before.boot(desktest.MAC1, "sn-1")
	before.boot(desktest.Stranger, "x-1")
	after := newLab(t, func(d *desk.Options, _ *Options) {
		d.Ledger = before.ledger
		d.Cluster.Nodes[0].Interfaces[0].MAC = desktest.Stranger // the board was replaced
	})
	m := after.arm("n1", desk.Order{})
	if len(m.MACs) != 1 || m.MACs[0] != desktest.Stranger || m.Identity.Serial != "x-1" || m.State != life.StateArmed {
		t.Errorf("armed %+v", m)
	}
	if ticketIn(after.boot(desktest.MAC1, "sn-1")) != "" {
		t.Error("the machine that was n1 gets the installer")
	}
	if ticketIn(after.boot(desktest.Stranger, "x-1")) == "" {
		t.Error("the machine that is n1 now does not")
	}
}

// A conflict that was settled meanwhile, or has come up, counts as it stands now.
func TestArmingSeesConflictsThatEnded(t *testing.T) {
	l := newLab(t)
	l.boot(desktest.MAC1, "sn-1")
	l.boot(desktest.MAC1, "sn-2")
	l.refused(http.StatusConflict, "conflict", "two machines", "POST", "/api/v1/nodes/n1/arm", operatorToken, desk.Order{})
	l.clock.Pass(life.LiveFor + time.Minute)
	l.boot(desktest.MAC1, "sn-2") // the other one was not heard of any more
	if m := l.arm("n1", desk.Order{}); m.Identity.Serial != "sn-2" {
		t.Errorf("armed %+v", m)
	}
}
