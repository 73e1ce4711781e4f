package supervisor

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
)

// errBad is wrapped by the error of a request that makes no sense.
var errBad = errors.New("bad request")

func statusOf(err error) int {
	switch {
	case errors.Is(err, nodepassword.ErrWrong):
		return http.StatusForbidden
	case errors.Is(err, ErrNotReady):
		return http.StatusServiceUnavailable
	case errors.Is(err, errBad):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

func text(s string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, _ *http.Request) error { return send(w, "text/plain", []byte(s)) }
}

func (s *Supervisor) file(name string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, _ *http.Request) error {
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return send(w, "text/plain", body)
	}
}

func (s *Supervisor) config(w http.ResponseWriter, _ *http.Request) error {
	body, err := json.Marshal(s.critical)
	if err != nil {
		return err
	}
	return send(w, "application/json", body)
}

func (s *Supervisor) ready(w http.ResponseWriter, _ *http.Request) error {
	if s.api.Load() == nil {
		return ErrNotReady
	}
	return send(w, "text/plain", []byte("ok"))
}

func (s *Supervisor) addresses(w http.ResponseWriter, req *http.Request) error {
	list, err := s.members.Addresses(req.Context())
	if err != nil {
		return err
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return send(w, "application/json", body)
}

func (s *Supervisor) memberList(w http.ResponseWriter, req *http.Request) error {
	body, err := s.members.Members(req.Context())
	if err != nil {
		return err
	}
	return send(w, "application/json", body)
}

func (s *Supervisor) bootstrap(w http.ResponseWriter, _ *http.Request) error {
	body, err := s.files.Export()
	if err != nil {
		return err
	}
	return send(w, "application/json", body)
}

func (s *Supervisor) clientCert(w http.ResponseWriter, req *http.Request) error {
	return s.sign(w, req, s.files.ClientCA(), func(name string) pki.Subject {
		return pki.Subject{Name: "system:node:" + name, Groups: []string{node}, Uses: pki.Client}
	})
}

func (s *Supervisor) servingCert(w http.ResponseWriter, req *http.Request) error {
	return s.sign(w, req, s.files.ServerCA(), func(name string) pki.Subject {
		names := []string{name, "localhost", "127.0.0.1"}
		for ip := range strings.SplitSeq(req.Header.Get("k3s-Node-IP"), ",") {
			if ip != "" {
				names = append(names, ip)
			}
		}
		return pki.Subject{Name: name, Names: names, Uses: pki.Serving}
	})
}

const maxRequest = 64 << 10 // bytes of a signing request

// sign signs the key of a node's signing request. What the certificate says is not
// for the node to choose.
func (s *Supervisor) sign(w http.ResponseWriter, req *http.Request, ca pki.Pair, subject func(string) pki.Subject) error {
	name := strings.ToLower(req.Header.Get("k3s-Node-Name"))
	password := req.Header.Get("k3s-Node-Password")
	if name == "" || password == "" {
		return fmt.Errorf("%w: node name or password not set", errBad)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest))
	if err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	csr, err := x509.ParseCertificateRequest(body)
	if err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	if err := csr.CheckSignature(); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	if err := s.gate.Admit(req.Context(), name, password); err != nil {
		return err
	}
	a, err := pki.Load(ca)
	if err != nil {
		return err
	}
	cert, err := a.Sign(subject(name), csr.PublicKey, time.Now())
	if err != nil {
		return err
	}
	return send(w, "text/plain", append(cert, a.PEM()...))
}
