// Package httpd is pxed's HTTP server: boot scripts, the files of the build, the
// interface of the machines (paths in package machine), that of operators under
// /api/v1, and the page. It speaks HTTP and decides nothing: decisions are
// package desk's, this one turns them into iPXE scripts, JSON and log lines.
package httpd

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/build"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Times of the server.
const (
	headerTime = 10 * time.Second // for a request's headers
	answerTime = 30 * time.Second // for a request's body and a small answer
	idleTime   = 2 * time.Minute  // between requests of one connection
)

// Counter is told what happened, for the metrics.
type Counter interface {
	Refused(code string)
	Booted(action string)
	Served(path string, status int, bytes int64, took time.Duration)
}

// Options are what a Server is made of.
type Options struct {
	Desk    *desk.Desk
	Build   *build.Build
	Token   string // of operators; "" lets nobody in by token
	Local   LocalBoot
	Console []string // kernel arguments of the installer, such as console=ttyS0,115200
	Also    []string // base URLs of others with the same ledger, for installers when this one is away
	Log     *slog.Logger
	Counter Counter
	Page    http.Handler          // GET / and what it needs
	Metrics http.Handler          // GET /metrics
	Book    Book                  // what bootstrap keeps here; nil: nothing
	Booted  func(mac cluster.MAC) // a machine asked for its script; may be nil
	Closing <-chan struct{}       // closed when the server shuts down: streams have no end of their own
}

// Server answers machines, operators and browsers.
type Server struct {
	desk    *desk.Desk
	build   *build.Build
	token   string
	local   LocalBoot
	console []string
	also    []string
	log     *slog.Logger
	counted Counter
	limit   *limiter
	mux     *http.ServeMux
	closing <-chan struct{}
	booted  func(mac cluster.MAC)
}

// New returns a server. It listens to nothing yet.
func New(o Options) *Server {
	s := &Server{
		desk: o.Desk, build: o.Build, token: o.Token, local: o.Local, console: o.Console, also: o.Also,
		log: o.Log, counted: o.Counter, limit: newLimiter(time.Now), mux: http.NewServeMux(), closing: o.Closing, booted: o.Booted,
	}
	s.routes(o)
	return s
}

// routes is the table of everything that can be asked for.
func (s *Server) routes(o Options) {
	s.mux.HandleFunc("GET "+machine.PathBoot, s.boot)
	s.mux.HandleFunc("GET "+machine.PathArtifacts, s.artifacts)
	s.mux.HandleFunc("POST "+machine.PathReport, s.limited(s.report))
	s.mux.HandleFunc("GET "+machine.PathTicket, s.limited(s.ticket))
	s.mux.HandleFunc("GET "+machine.PathSeed, s.limited(s.seed))
	s.mux.HandleFunc("POST "+machine.PathProgress, s.limited(s.progress))
	s.mux.HandleFunc("POST "+machine.PathReceipt, s.limited(s.receipt))
	s.mux.HandleFunc("POST "+machine.PathHealth, s.limited(s.ready))

	s.mux.HandleFunc("GET /api/v1/machines", s.operator(s.listMachines))
	s.mux.HandleFunc("GET /api/v1/machines/{name}", s.operator(s.showMachine))
	s.mux.HandleFunc("POST /api/v1/nodes/{node}/arm", s.operator(s.arm))
	s.mux.HandleFunc("POST /api/v1/nodes/{node}/rearm", s.operator(s.rearm))
	s.mux.HandleFunc("POST /api/v1/nodes/{node}/disarm", s.operator(s.disarm))
	s.mux.HandleFunc("POST /api/v1/nodes/{node}/wake", s.operator(s.wake))
	s.mux.HandleFunc("POST /api/v1/machines/{name}/bind", s.operator(s.bind))
	s.mux.HandleFunc("DELETE /api/v1/machines/{name}", s.operator(s.forget))
	s.mux.HandleFunc("GET /api/v1/events", s.operator(s.events))
	s.mux.HandleFunc("GET /api/v1/status", s.operator(s.status))
	s.mux.HandleFunc("GET /api/v1/members", s.operator(s.listMembers))
	s.mux.HandleFunc("DELETE /api/v1/members/{address}", s.operator(s.removeMember))

	s.bookRoutes(o.Book)

	s.mux.HandleFunc("GET /healthz", s.health)
	if o.Metrics != nil {
		s.mux.Handle("GET /metrics", o.Metrics)
	}
	if o.Page != nil {
		s.mux.Handle("GET /{$}", o.Page)
		s.mux.Handle("GET /page/", o.Page)
	}
	s.mux.HandleFunc("/", s.unknown)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Body != http.NoBody {
		// Not http.Server's ReadTimeout: that one also ends answers that take longer.
		_ = http.NewResponseController(w).SetReadDeadline(start.Add(answerTime))
	}
	s.mux.ServeHTTP(rec, r)
	s.counted.Served(r.Pattern, rec.status, rec.bytes, time.Since(start))
	s.log.Debug("request", "from", who(r), "method", r.Method, "path", r.URL.Path, "status", rec.status, "bytes", rec.bytes)
}

// HTTPServer is an http.Server around h with the times of this package.
func HTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       ConnContext,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// limited answers only so many requests a second of one address.
func (s *Server) limited(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.limit.allow(client(r)) {
			s.refuse(w, r, refusal{http.StatusTooManyRequests, "too-many", "too many requests from this address", "a machine that boots again and again? look at its console"})
			return
		}
		h(w, r)
	}
}

// client is the address a request comes from; the zero address over the unix socket.
func client(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}

// who is the client, for the log.
func who(r *http.Request) string {
	if a := client(r); a.IsValid() {
		return a.String()
	}
	return "socket"
}

// base is the URL under which the machine reached this server: the address that
// its connection arrived at, not what its Host header says.
func base(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }); ok {
		if local, err := netip.ParseAddrPort(a.String()); err == nil {
			return "http://" + netip.AddrPortFrom(local.Addr().Unmap(), local.Port()).String()
		}
	}
	return "http://" + strings.Map(hostRune, r.Host)
}

// hostRune keeps what a host and port consist of.
func hostRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-:[]", r) {
		return r
	}
	return -1
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.desk.Healthy(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
