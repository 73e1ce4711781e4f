package supervisor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/labk3s/internal/joining"
	"github.com/slipway/slipway/vm-test/labk3s/internal/nodepassword"
	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/token"
)

const (
	serverToken = "server-secret"
	agentToken  = "agent-secret"
	password    = "node-secret" // of every node that the gate lets in
)

type cluster struct {
	url   string
	files pki.Files
	s     *Supervisor
	full  string
}

func (cluster) Members(context.Context) ([]byte, error)     { return []byte(`{"members":[]}`), nil }
func (cluster) Addresses(context.Context) ([]string, error) { return []string{"192.0.2.1:6443"}, nil }

// Admit knows one password; the node "early" comes before anything is known.
func (cluster) Admit(_ context.Context, node, given string) error {
	switch {
	case node == "early":
		return ErrNotReady
	case given != password:
		return fmt.Errorf("node %s: %w", node, nodepassword.ErrWrong)
	}
	return nil
}

// start runs a supervisor on a loopback port.
func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{files: pki.At(t.TempDir())}
	must(t, c.files.Ensure(pki.Server{Names: []string{"127.0.0.1"}, NodeName: "n1", NodeIP: "127.0.0.1"}, time.Now()))
	must(t, os.MkdirAll(filepath.Dir(c.files.Passwords()), 0o700))
	must(t, token.Passwords{token.Server: serverToken, token.Node: agentToken}.Write(c.files.Passwords()))
	s, err := New(c.files, joining.Critical{FlannelBackend: "none", EncryptSecrets: true}, c, c)
	must(t, err)
	c.s = s
	l, err := Listen("127.0.0.1:0", c.files.APIServing())
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Serve(ctx, l, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c.url = "https://" + l.Addr().String()
	ca, err := os.ReadFile(c.files.ServerCA().Cert)
	must(t, err)
	c.full = token.Full(ca, token.Server, serverToken)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMeet(t *testing.T) {
	c := start(t)
	for name, secret := range map[string]string{"full": c.full, "short": serverToken} {
		s, err := joining.Meet(t.Context(), c.url+"/", secret, token.Server)
		if err != nil {
			t.Errorf("%s token: %v", name, err)
			continue
		}
		if _, err := s.Get(t.Context(), "/v1-k3s/server-bootstrap"); err != nil {
			t.Errorf("%s token: %v", name, err)
		}
	}
	other := token.Full([]byte("another CA"), token.Server, serverToken)
	if _, err := joining.Meet(t.Context(), c.url, other, token.Server); err == nil || !strings.Contains(err.Error(), "does not match the Cluster CA") {
		t.Errorf("a token of another cluster: %v", err)
	}
	if _, err := joining.Meet(t.Context(), "http://127.0.0.1", c.full, token.Server); err == nil {
		t.Error("a server without TLS was met")
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	c := start(t)
	for _, row := range []struct {
		path, user, password string
		status               int
	}{
		{"/ping", "", "", 200},
		{"/cacerts", "", "", 200},
		{"/v1-k3s/config", "", "", 401},
		{"/v1-k3s/config", "node", "wrong", 401},
		{"/v1-k3s/config", "node", serverToken, 401},
		{"/v1-k3s/config", "node", agentToken, 200},
		{"/v1-k3s/config", "server", serverToken, 200},
		{"/v1-k3s/apiservers", "node", agentToken, 200},
		{"/v1-k3s/server-bootstrap", "node", agentToken, 403},
		{"/v1-k3s/server-bootstrap", "server", serverToken, 200},
		{"/db/info", "node", agentToken, 403},
		{"/db/info", "server", serverToken, 200},
		{"/v1-k3s/readyz", "server", serverToken, 503},
		{"/readyz", "", "", 503}, // the API server's
	} {
		status, body := c.get(t, nil, row.path, row.user, row.password)
		if status != row.status {
			t.Errorf("%s as %q: %d %s, want %d", row.path, row.user, status, body, row.status)
		}
		if strings.Contains(body, "PRIVATE KEY") && row.user != "server" {
			t.Errorf("%s gives keys to %q", row.path, row.user)
		}
	}
}

func (c *cluster) get(t *testing.T, certs []tls.Certificate, path, user, pass string) (int, string) {
	t.Helper()
	a, err := pki.Load(c.files.ServerCA())
	must(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool(), Certificates: certs}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, nil)
	must(t, err)
	if user != "" {
		req.SetBasicAuth(user, pass)
	}
	answer, err := client.Do(req)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(body)
}

func TestKubeletCertificate(t *testing.T) {
	c := start(t)
	s, err := joining.Meet(t.Context(), c.url, agentToken, token.Node)
	must(t, err)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	node := joining.Node{Name: "N2", Password: password, IP: "192.0.2.2"}
	must(t, s.Certificate(t.Context(), joining.ClientCertPath, node, "/etc/rancher/node", cert, key))
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	if got := pair.Leaf.Subject; got.CommonName != "system:node:n2" || got.Organization[0] != "system:nodes" {
		t.Errorf("the kubelet is %s", got)
	}
	if status, body := c.get(t, []tls.Certificate{pair}, "/v1-k3s/config", "", ""); status != 200 {
		t.Errorf("with the kubelet's certificate: %d %s", status, body)
	}
	if status, _ := c.get(t, []tls.Certificate{pair}, "/db/info", "", ""); status != 403 {
		t.Errorf("a kubelet asks for the members of etcd: %d", status)
	}

	must(t, s.Certificate(t.Context(), joining.ServingCertPath, node, "/etc/rancher/node", cert, key))
	pair, err = tls.LoadX509KeyPair(cert, key)
	must(t, err)
	a, err := pki.Load(c.files.ServerCA())
	must(t, err)
	for _, name := range []string{"192.0.2.2", "n2", "127.0.0.1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name}); err != nil {
			t.Errorf("the kubelet's serving certificate: %v", err)
		}
	}
}

func TestNodeIsRefused(t *testing.T) {
	c := start(t)
	s, err := joining.Meet(t.Context(), c.url, agentToken, token.Node)
	must(t, err)
	file := filepath.Join(t.TempDir(), "x")
	ask := func(name, pass string) error {
		return s.Certificate(t.Context(), joining.ClientCertPath, joining.Node{Name: name, Password: pass}, "/etc/rancher/node", file, file)
	}
	err = ask("n2", "another")
	if !errors.Is(err, joining.ErrForbidden) || !strings.Contains(err.Error(), "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match") {
		t.Errorf("a wrong password: %v", err)
	}
	if err := ask("early", password); err == nil || errors.Is(err, joining.ErrForbidden) {
		t.Errorf("before the API is there: %v", err)
	}
	if err := ask("", password); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused node has a certificate")
	}
}

func TestCompare(t *testing.T) {
	c := start(t)
	s, err := joining.Meet(t.Context(), c.url, c.full, token.Server)
	must(t, err)
	must(t, s.Compare(t.Context(), joining.Critical{FlannelBackend: "none", EncryptSecrets: true}))
	other := joining.Critical{FlannelBackend: "vxlan", EncryptSecrets: false}
	if err := s.Compare(t.Context(), other); err == nil || err.Error() != "critical configuration value mismatch between servers" {
		t.Errorf("another configuration: %v", err)
	}
	theirs, err := s.Critical(t.Context())
	must(t, err)
	if got := strings.Join(other.Differences(theirs), " "); got != "secrets-encryption flannel-backend" {
		t.Errorf("the differences are %q", got)
	}
}

func TestAPIGetsTheRest(t *testing.T) {
	c := start(t)
	c.s.SetAPI(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "api %s", req.URL.Path)
	}))
	if status, body := c.get(t, nil, "/api//v1/", "", ""); status != 200 || body != "api /api//v1/" {
		t.Errorf("got %d %q", status, body)
	}
	if status, _ := c.get(t, nil, "/v1-k3s/readyz", "node", agentToken); status != 200 {
		t.Errorf("the supervisor is not ready: %d", status)
	}
	if status, body := c.get(t, nil, "/ping", "", ""); status != 200 || body != "pong" {
		t.Errorf("got %d %q", status, body)
	}
}
