// Package joining is the side of a node that joins: it meets a server for the first
// time, checks by the token that it is the right one, and asks it for what it needs.
package joining

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

const (
	requestTime = 20 * time.Second
	maxAnswer   = 4 << 20 // bytes
)

// ErrForbidden is wrapped by the error of a request that the server understood and
// will not grant.
var ErrForbidden = errors.New("forbidden")

// Server is a server that has been met.
type Server struct {
	url    string
	user   string
	pass   string
	ca     []byte
	client *http.Client
}

// Meet asks a server for its CA, over a connection that proves nothing, and holds it
// against the token. From then on only a server of that CA is spoken to. The user is
// the one to be unless the token names another; passwords are not said yet.
func Meet(ctx context.Context, server, secret, user string) (*Server, error) {
	t, err := token.Parse(secret)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("only https:// URLs are supported, invalid server: %s", server)
	}
	if t.User == "" {
		t.User = user
	}
	s := &Server{url: base.String(), user: t.User, pass: t.Password}
	// Whoever answers here is checked right after.
	stranger := client(&tls.Config{InsecureSkipVerify: true})
	defer stranger.CloseIdleConnections()
	if s.ca, err = ask(stranger, request(ctx, http.MethodGet, s.url+"/cacerts", nil)); err != nil {
		return nil, fmt.Errorf("failed to get CA certs: %w", err)
	}
	if t.CAHash == "" {
		slog.Warn("Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash. Use the full token from the server's node-token file to enable Cluster CA validation.")
	}
	if err := t.Check(s.ca); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.ca) {
		return nil, errors.New("the server has no CA")
	}
	s.client = client(&tls.Config{RootCAs: pool})
	if _, err := s.Get(ctx, "/cacerts"); err != nil {
		return nil, fmt.Errorf("CA cert validation failed: %w", err)
	}
	return s, nil
}

// CA is the PEM certificate of the cluster's server CA.
func (s *Server) CA() []byte { return s.ca }

// URL is where the server is.
func (s *Server) URL() string { return s.url }

// Get asks the server for a document.
func (s *Server) Get(ctx context.Context, path string) ([]byte, error) {
	return ask(s.client, s.request(ctx, http.MethodGet, path, nil))
}

// Node is what a node says of itself when it asks for its certificates.
type Node struct{ Name, Password, IP string }

// Sign lets the server sign a certificate for a node. The answer is the certificate
// and its authority, PEM.
func (s *Server) Sign(ctx context.Context, path string, n Node, csr []byte) ([]byte, error) {
	req := s.request(ctx, http.MethodPost, path, csr)
	if req.err == nil {
		req.Header.Set("k3s-Node-Name", n.Name)
		req.Header.Set("k3s-Node-Password", n.Password)
		req.Header.Set("k3s-Node-IP", n.IP)
	}
	return ask(s.client, req)
}

// prepared is a request, or why there is none.
type prepared struct {
	*http.Request
	err error
}

func (s *Server) request(ctx context.Context, method, path string, body []byte) prepared {
	req := request(ctx, method, s.url+path, body)
	if req.err == nil {
		req.SetBasicAuth(s.user, s.pass)
	}
	return req
}

func request(ctx context.Context, method, target string, body []byte) prepared {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	return prepared{req, err}
}

func client(t *tls.Config) *http.Client {
	return &http.Client{Timeout: requestTime, Transport: &http.Transport{TLSClientConfig: t, DisableKeepAlives: true}}
}

func ask(c *http.Client, req prepared) ([]byte, error) {
	if req.err != nil {
		return nil, req.err
	}
	answer, err := c.Do(req.Request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL, err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return body, nil
	case http.StatusForbidden:
		return nil, fmt.Errorf("%s: %s: %w", req.URL, answer.Status, ErrForbidden)
	default:
		return nil, fmt.Errorf("%s: %s", req.URL, answer.Status)
	}
}
