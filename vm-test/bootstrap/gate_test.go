package bootstrap

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/controlplane"
)

// write is a request that changes something, as a gate sees it.
type write struct {
	n      int // 1 for the first that passes the gate
	method string
	path   string
	body   []byte
}

func (w write) String() string { return fmt.Sprintf("write %d, %s %s", w.n, w.method, w.path) }

// record reports whether it writes the record of a Helm release.
func (w write) record() bool {
	return strings.Contains(w.path, "/secrets") && bytes.Contains(w.body, []byte("helm.sh/release.v1"))
}

// gate stands between a run and the API server. It lets everything pass until a write
// is one to stop at: that one is held for ever and never reaches the API server.
type gate struct {
	server *httptest.Server
	held   chan write

	mu   sync.Mutex
	n    int
	stop func(write) bool
	shut chan struct{}
}

// newGate opens a gate before a plane.
func newGate(t *testing.T, p *controlplane.Plane) *gate {
	t.Helper()
	target, err := url.Parse(p.Server())
	must(t, err)
	g := &gate{held: make(chan write, 1), shut: make(chan struct{})}
	proxy := &httputil.ReverseProxy{Transport: p.Client().Transport,
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(http.StatusBadGateway) }}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.pass(r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { close(g.shut); g.server.Close() })
	return g
}

// kubeconfig leads through the gate.
func (g *gate) kubeconfig() []byte {
	return controlplane.Access{Server: g.server.URL}.Kubeconfig()
}

// until sets where the next run is stopped.
func (g *gate) until(stop func(write) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n, g.stop = 0, stop
}

// pass lets a request through, or holds it until its sender is gone.
func (g *gate) pass(r *http.Request) bool {
	if r.Method == http.MethodGet || r.URL.Query().Get("dryRun") != "" {
		return true
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	g.n++
	w := write{g.n, r.Method, r.URL.Path, body}
	hold := g.stop != nil && g.stop(w)
	g.mu.Unlock()
	if !hold {
		return true
	}
	select {
	case g.held <- w:
	default:
	}
	select {
	case <-r.Context().Done():
	case <-g.shut:
	}
	return false
}

// killed runs a child through the gate and kills it where stop says, with the write
// in flight.
func (s *suite) killed(t *testing.T, g *gate, stop func(write) bool, env ...string) write {
	t.Helper()
	g.until(stop)
	defer g.until(nil)
	c := s.start(t, g.kubeconfig(), env...)
	for late := time.After(patience); ; {
		select {
		case w := <-g.held:
			c.kill()
			t.Logf("killed at %s", w)
			return w
		case line, ok := <-c.lines:
			c.said.WriteString(line + "\n")
			if !ok {
				t.Fatalf("the run ended before it was stopped:\n%s", c.said.String())
			}
		case <-late:
			t.Fatalf("the run was not stopped within %s:\n%s", patience, c.said.String())
		}
	}
}
