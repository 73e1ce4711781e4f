package httpd

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// handler is a server without a network; renew gives it a new ledger, in which n1
// is armed, so that one run does not depend on another.
func handler(f testing.TB) (s *Server, renew func()) {
	f.Helper()
	clock := desktest.NewClock()
	s = New(Options{Build: buildtest.Open(f, buildtest.Contents()), Token: operatorToken, Log: slog.New(slog.DiscardHandler), Counter: silent{}})
	s.limit = newLimiter(func() time.Time { clock.Pass(time.Second); return clock.Now() })
	return s, func() {
		s.desk = desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: desktest.NewMemory(), Now: clock.Now, Discover: true})
		if _, err := s.desk.Arm(context.Background(), "n1", desk.Order{}); err != nil {
			panic(err)
		}
	}
}

// FuzzBoot: whatever iPXE, or somebody in its place, asks, the answer is a script
// of known commands, and only the armed machine's address gets an installer.
func FuzzBoot(f *testing.F) {
	for _, q := range []string{"mac=52:54:00:12:34:56&serial=a&firmware=uefi", "mac=x&firmware=bios", "mac=02-00-00-00-00-01&uuid=\n&serial=$(x)", "%", ""} {
		f.Add(q)
	}
	s, renew := handler(f)
	f.Fuzz(func(t *testing.T, query string) {
		renew()
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", machine.PathBoot, nil)
		r.URL.RawQuery = query
		s.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.HasPrefix(body, header) {
			t.Fatalf("%d %q", w.Code, body)
		}
		for line := range strings.Lines(strings.TrimPrefix(body, header)) {
			if !known(line) {
				t.Fatalf("%q became the command %q", query, line)
			}
		}
		q, _ := url.ParseQuery(query)
		mac, _ := machine.ParseMAC(word(q.Get("mac")))
		if ticketIn(body) != "" && mac != desktest.MAC1 {
			t.Fatalf("%q got an installer", query)
		}
	})
}

// known reports whether a line is one of the commands that scripts consist of.
func known(line string) bool {
	if strings.ContainsAny(line, "\r\x00;`") {
		return false
	}
	for _, start := range []string{
		"echo slipway: ", "exit", ":efi", ":failed", ":load", ":again", "goto load", "set tries:int32 0", "inc tries || goto failed", "iseq ${tries} ", "iseq ${platform} efi && goto efi ||", "kernel --name vmlinuz http", "initrd --name initrd.zst http",
		"boot || goto failed", "imgfree ||", "sleep ", "chain --replace --autofree http", "poweroff ||", "sanboot ",
	} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// FuzzMachine: whatever is sent to the paths of the machines, there is an answer,
// it is never a server error, and nothing but the seed's owner gets a seed.
func FuzzMachine(f *testing.F) {
	for _, path := range []string{machine.PathReport, machine.PathProgress, machine.PathReceipt, machine.PathHealth} {
		f.Add("POST", path, "token", []byte(`{"format":"slipway-report/1","stage":"write"}`))
	}
	f.Add("GET", machine.PathSeed, "", []byte(nil))
	f.Add("GET", "/api/v1/machines/n1", "x", []byte(nil))
	f.Add("POST", "/api/v1/nodes/n1/arm", operatorToken, []byte(`{"tries":1}`))
	f.Add("GET", "/artifacts/netboot/../index.json", "", []byte(nil))
	s, renew := handler(f)
	f.Fuzz(func(t *testing.T, method, path, token string, body []byte) {
		renew()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://pxed/", strings.NewReader(string(body)))
		if err != nil {
			return
		}
		if strings.Contains(path, "wait") {
			return
		}
		r.URL = &url.URL{Scheme: "http", Host: "pxed", Path: "/" + strings.TrimPrefix(path, "/")}
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "#cloud-config") {
			t.Fatalf("%s %s handed out a seed", method, path)
		}
	})
}
