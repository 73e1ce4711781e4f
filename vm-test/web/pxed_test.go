package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/pxed/keep"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

const operatorToken = "operator-token-of-the-test"

// server is a running pxed.
type server struct {
	*testing.T
	url  string
	stop func()
}

// start serves at an address, which may have port 0.
func start(t *testing.T, address, state string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := ledger.Open(ctx, ledger.Options{Dir: filepath.Join(state, "ledger")})
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan []netip.AddrPort, 1), make(chan error, 1)
	o := pxed.Options{
		Cluster: desktest.Cluster(), Image: buildtest.Write(t, buildtest.Contents()), Key: buildtest.Public(), Mode: pxe.ModeProxy,
		HTTP: address, Token: operatorToken, Ledger: keep.Ledger{Ledger: l}, Discover: true, Log: slog.New(slog.DiscardHandler), Progress: progress.Nop{},
		Started: func(a []netip.AddrPort) { started <- a },
	}
	go func() { ended <- pxed.Serve(ctx, o) }()
	s := &server{T: t}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.stop)
	select {
	case a := <-started:
		s.url = "http://" + a[0].String()
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(within):
		t.Fatal("pxed does not start")
	}
	return s
}

// ask plays a machine.
func (s *server) ask(method, path, token string, body, into any) {
	s.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			s.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, in)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %s %s %v", method, path, answer.Status, text, err)
	}
	switch v := into.(type) {
	case nil:
	case *string:
		*v = string(text)
	default:
		if err := json.Unmarshal(text, v); err != nil {
			s.Fatal(err)
		}
	}
}

// boot gives the ticket that a machine is booted with, or "".
func (s *server) boot(mac, serial string) string {
	s.Helper()
	var script string
	s.ask("GET", machine.PathBoot+"?firmware=uefi&mac="+mac+"&serial="+serial, "", nil, &script)
	if m := regexp.MustCompile(`slipway\.ticket=([0-9a-f]{64})`).FindStringSubmatch(script); m != nil {
		return m[1]
	}
	return ""
}

// install plays an installer up to its ticket.
func (s *server) install(mac, serial string) (token string, t machine.Ticket) {
	s.Helper()
	if token = s.boot(mac, serial); token == "" {
		s.Fatal("the machine got no installer")
	}
	s.ask("POST", machine.PathReport, token, desktest.Report(mac, serial), nil)
	s.ask("GET", machine.PathTicket, token, nil, &t)
	return token, t
}

func (s *server) progress(token string, p machine.Progress) {
	s.Helper()
	s.ask("POST", machine.PathProgress, token, p, nil)
}
