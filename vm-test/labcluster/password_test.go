package labcluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
)

// nodePasswords speaks the protocol of an agent that joins.
func nodePasswords(t *testing.T, s *server) {
	const secretPath = "/api/v1/namespaces/kube-system/secrets/n9.node-password.k3s"
	if status, text := kubeletCert(t, s, "N9", "first"); status != http.StatusOK || !strings.HasPrefix(text, "-----BEGIN CERTIFICATE") {
		t.Fatalf("a new node gets %d %s", status, text)
	}
	s.object(t, "GET", secretPath, "")
	if status, _ := kubeletCert(t, s, "n9", "first"); status != http.StatusOK {
		t.Errorf("the node with its password gets %d", status)
	}
	if status, text := kubeletCert(t, s, "n9", "second"); status != http.StatusForbidden {
		t.Errorf("the node with another password gets %d %s", status, text)
	}
	// With the node, what the cluster remembers of it goes.
	s.object(t, "POST", nodePath, `{"metadata":{"name":"n9"}}`)
	s.until(t, "the node is kept", func() error {
		if o := s.object(t, "GET", nodePath+"/n9", ""); len(o.Metadata.Finalizers) == 0 {
			return io.ErrNoProgress
		}
		return nil
	})
	s.object(t, "DELETE", nodePath+"/n9", "")
	s.until(t, "the node is gone", func() error { return gone(t, s, nodePath+"/n9") })
	if err := gone(t, s, secretPath); err != nil {
		t.Errorf("the password of a node that is gone: %v", err)
	}
	if status, _ := kubeletCert(t, s, "n9", "second"); status != http.StatusOK {
		t.Errorf("the node reinstalled gets %d", status)
	}
}

func kubeletCert(t *testing.T, s *server, node, password string) (int, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.ip+":6443/v1-k3s/client-kubelet.crt", bytes.NewReader(csr))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("node", secret)
	req.Header.Set("k3s-Node-Name", node)
	req.Header.Set("k3s-Node-Password", password)
	c, err := s.client(t, "server-ca.crt", "client-admin")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
