package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// lab is a server in front of a desk with a ledger in memory.
type lab struct {
	*testing.T
	url    string
	http   *http.Client
	desk   *desk.Desk
	ledger *desktest.Memory
	clock  *desktest.Clock
	log    *logBook
	server *Server
}

const operatorToken = "operator-secret"

func newLab(t *testing.T, set ...func(*desk.Options, *Options)) *lab {
	t.Helper()
	l := &lab{T: t, ledger: desktest.NewMemory(), clock: desktest.NewClock(), log: &logBook{}}
	d := desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: l.ledger, Now: l.clock.Now, Discover: true, Log: l.log.logger()}
	o := Options{Build: buildtest.Open(t, buildtest.Contents()), Token: operatorToken, Log: l.log.logger(), Counter: silent{}, Console: []string{"console=ttyS0,115200"}}
	closing := make(chan struct{})
	o.Closing = closing
	for _, f := range set {
		f(&d, &o)
	}
	l.desk = desk.New(d)
	o.Desk = l.desk
	l.server = New(o)
	l.server.limit = newLimiter(l.clock.Now)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = HTTPServer(l.server, l.log.logger())
	srv.Start()
	t.Cleanup(func() { close(closing); srv.Close() })
	l.url, l.http = srv.URL, srv.Client()
	return l
}

type silent struct{}

func (silent) Refused(string)                           {}
func (silent) Booted(string)                            {}
func (silent) Served(string, int, int64, time.Duration) {}

// logBook keeps what was logged.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// do sends a request and gives status and body; each has its own second, so that
// the limit of the server is not what is tested.
func (l *lab) do(method, path, token string, body any) (int, string) {
	l.Helper()
	l.clock.Pass(time.Second)
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			l.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	ctx, stop := context.WithTimeout(l.Context(), 20*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, in)
	if err != nil {
		l.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := l.http.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		l.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// want sends a request that must succeed and decodes the answer.
func want[T any](l *lab, method, path, token string, body any) T {
	l.Helper()
	var v T
	status, text := l.do(method, path, token, body)
	if status != http.StatusOK {
		l.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		l.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return v
}

// refused sends a request that must be refused, and checks that the reason is
// in the answer, the log and the events.
func (l *lab) refused(status int, code, reason, method, path, token string, body any) {
	l.Helper()
	got, text := l.do(method, path, token, body)
	var e Error
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		l.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	if got != status || e.Code != code || !strings.Contains(e.Error, reason) {
		l.Errorf("%s %s: %d %+v, want %d %s %q", method, path, got, e, status, code, reason)
	}
	if !strings.Contains(l.log.String(), "code="+code) || !strings.Contains(l.log.String(), reason) {
		l.Errorf("%s is not in the log: %s", code, l.log)
	}
	l.inEvents(code, reason)
}

func (l *lab) inEvents(code, reason string) {
	l.Helper()
	list, err := l.desk.Events(l.Context(), 0, 1000)
	if err != nil {
		l.Fatal(err)
	}
	for _, e := range list {
		if e.Code == code && strings.Contains(e.Text, reason) {
			return
		}
	}
	l.Errorf("no event with %s %q in %+v", code, reason, list)
}

// boot asks for the boot script of a machine.
func (l *lab) boot(mac, serial string) string {
	l.Helper()
	q := url.Values{"mac": {mac}, "serial": {serial}, "firmware": {"uefi"}}
	status, text := l.do("GET", machine.PathBoot+"?"+q.Encode(), "", nil)
	if status != http.StatusOK || !strings.HasPrefix(text, "#!ipxe\n") {
		l.Fatalf("boot of %s: %d %s", mac, status, text)
	}
	return text
}

// installed tells whether a script starts the installer; the ticket is in it.
func ticketIn(script string) string {
	m := regexp.MustCompile(` slipway\.ticket=([0-9a-f]{64}) `).FindStringSubmatch(script)
	if m == nil {
		return ""
	}
	return m[1]
}

func (l *lab) arm(node string, o desk.Order) desk.Machine {
	l.Helper()
	return want[desk.Machine](l, "POST", "/api/v1/nodes/"+node+"/arm", operatorToken, o)
}

// start arms n1 and boots its machine into the installer, up to its ticket.
func (l *lab) start() (token string, t machine.Ticket) {
	l.Helper()
	l.arm("n1", desk.Order{})
	token = ticketIn(l.boot(desktest.MAC1, "sn-1"))
	if token == "" {
		l.Fatal("an armed machine got no installer")
	}
	reply := want[machine.Reply](l, "POST", machine.PathReport, token, desktest.Report(desktest.MAC1, "sn-1"))
	if reply.Action != machine.ActionInstall {
		l.Fatalf("%+v", reply)
	}
	return token, want[machine.Ticket](l, "GET", machine.PathTicket, token, nil)
}
