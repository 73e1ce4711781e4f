// Package supervisor is what a server answers on port 6443 before the API server
// sees a request: the protocol of nodes that join, and who may speak it.
package supervisor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

// Members knows the members of etcd.
type Members interface {
	// Members is the document that a joining server gets, and Addresses the
	// addresses of the servers as host:port.
	Members(context.Context) ([]byte, error)
	Addresses(context.Context) ([]string, error)
}

// Gate decides about nodes.
type Gate interface {
	// Admit lets a node in that shows a password. Its errors wrap
	// nodepassword.ErrWrong, or ErrNotReady when it cannot tell yet.
	Admit(ctx context.Context, node, password string) error
}

// ErrNotReady says that the API server cannot be asked yet.
var ErrNotReady = errors.New("the API server is not ready")

// Supervisor is the handler of the port.
type Supervisor struct {
	files     pki.Files
	passwords token.Passwords
	critical  joining.Critical
	members   Members
	gate      Gate
	routes    map[string]route
	clients   *x509.CertPool
	api       atomic.Pointer[http.Handler]
}

// New makes a supervisor that answers for everything but the API. The passwords and
// authorities must be there.
func New(f pki.Files, c joining.Critical, m Members, g Gate) (*Supervisor, error) {
	passwords, err := token.ReadPasswords(f.Passwords())
	if err != nil {
		return nil, err
	}
	ca, err := pki.Load(f.ClientCA())
	if err != nil {
		return nil, err
	}
	s := &Supervisor{files: f, passwords: passwords, critical: c, members: m, gate: g, clients: ca.Pool()}
	s.routes = s.table()
	return s, nil
}

// SetAPI hands everything that is not the supervisor's to the API server.
func (s *Supervisor) SetAPI(h http.Handler) { s.api.Store(&h) }

// Roles of those who ask. A node is known by its kubelet's certificate.
const (
	server = "k3s:server"
	agent  = "k3s:agent"
	node   = "system:nodes"
)

type route struct {
	roles  []string // who may; nobody has to be anybody when empty
	handle func(http.ResponseWriter, *http.Request) error
}

func (s *Supervisor) table() map[string]route {
	nodes, servers := []string{server, agent, node}, []string{server}
	return map[string]route{
		"/ping":                    {nil, text("pong")},
		"/cacerts":                 {nil, s.file(s.files.ServerCA().Cert)},
		"/v1-k3s/client-ca.crt":    {nodes, s.file(s.files.ClientCA().Cert)},
		"/v1-k3s/server-ca.crt":    {nodes, s.file(s.files.ServerCA().Cert)},
		joining.ConfigPath:         {nodes, s.config},
		"/v1-k3s/apiservers":       {nodes, s.addresses},
		"/v1-k3s/readyz":           {nodes, s.ready},
		joining.ClientCertPath:     {nodes, s.clientCert},
		joining.ServingCertPath:    {nodes, s.servingCert},
		"/v1-k3s/server-bootstrap": {servers, s.bootstrap},
		"/db/info":                 {servers, s.memberList},
	}
}

func (s *Supervisor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, ours := s.routes[req.URL.Path]
	switch api := s.api.Load(); {
	case !ours && api == nil:
		fail(w, http.StatusServiceUnavailable, ErrNotReady)
	case !ours:
		(*api).ServeHTTP(w, req)
	default:
		s.answer(w, req, r)
	}
}

func (s *Supervisor) answer(w http.ResponseWriter, req *http.Request, r route) {
	if len(r.roles) > 0 {
		role := s.role(req)
		switch {
		case role == "":
			fail(w, http.StatusUnauthorized, errors.New("not authorized"))
			return
		case !slices.Contains(r.roles, role):
			fail(w, http.StatusForbidden, errors.New("forbidden"))
			return
		}
	}
	if err := r.handle(w, req); err != nil {
		status := statusOf(err)
		level := slog.LevelError
		if errors.Is(err, ErrNotReady) { // nodes ask again and again while we start
			level = slog.LevelDebug
		}
		slog.Log(req.Context(), level, "Sending HTTP error", "code", status, "path", req.URL.Path, "from", req.RemoteAddr, "err", err)
		fail(w, status, err)
	}
}

// role is what the one who asks may be, by password or by certificate.
func (s *Supervisor) role(req *http.Request) string {
	if user, password, ok := req.BasicAuth(); ok {
		return s.passwords.Role(user, password)
	}
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return ""
	}
	cert := req.TLS.PeerCertificates[0]
	if _, err := cert.Verify(x509.VerifyOptions{Roots: s.clients, KeyUsages: pki.Client}); err != nil {
		return ""
	}
	if slices.Contains(cert.Subject.Organization, node) {
		return node
	}
	return ""
}

// fail answers with an error as the API does.
func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(metav1.Status{ // the other side may be gone; nobody is left to tell
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  err.Error(),
		Reason:   metav1.StatusReason(http.StatusText(status)),
		Code:     int32(status),
	})
}

func send(w http.ResponseWriter, kind string, body []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err := w.Write(body)
	if err != nil {
		slog.Debug("an answer was not taken", "err", err)
	}
	return nil
}
