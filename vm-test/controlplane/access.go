package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"testing"
)

// Access is what a client needs to reach the API server as somebody.
type Access struct {
	Server        string // URL
	CA, Cert, Key []byte // PEM
}

// User gives access as a user in some groups. An administrator is in
// system:masters; others may do what RBAC objects allow them.
func (p *Plane) User(name string, groups ...string) Access {
	p.t.Helper()
	k := p.kubeCA.issue(p.t, identity{name: name, groups: groups})
	return Access{Server: p.Server(), CA: p.kubeCA.pem, Cert: k.cert, Key: k.key}
}

// KubeconfigBytes is a kubeconfig for an administrator.
func (p *Plane) KubeconfigBytes() []byte { return p.User("admin", "system:masters").Kubeconfig() }

// Kubeconfig is the path of a file with KubeconfigBytes.
func (p *Plane) Kubeconfig() string {
	p.t.Helper()
	path := p.path("admin.kubeconfig")
	if _, err := os.Stat(path); err != nil {
		writeFile(p.t, path, p.KubeconfigBytes())
	}
	return path
}

// Kubeconfig is a kubeconfig with nothing but this access.
func (a Access) Kubeconfig() []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: default
contexts:
- name: default
  context: {cluster: default, user: default}
clusters:
- name: default
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: default
  user:
    client-certificate-data: %s
    client-key-data: %s
`, a.Server, b64(a.CA), b64(a.Cert), b64(a.Key))
}

// TLS is the access as a TLS configuration.
func (a Access) TLS(t testing.TB) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.CA)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{keyPair{a.Cert, a.Key}.pair(t)}}
}

func (a Access) client(t testing.TB) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: a.TLS(t), ForceAttemptHTTP2: true}}
}

// writeKeys writes the files that the programs read.
func (p *Plane) writeKeys() {
	p.t.Helper()
	writeFile(p.t, p.path("kube-ca.crt"), p.kubeCA.pem)
	writeFile(p.t, p.path("etcd-ca.crt"), p.etcdCA.pem)
	p.etcdCA.issue(p.t, identity{name: "etcd-client"}).write(p.t, p.path("etcd-client"))
	p.kubeCA.issue(p.t, identity{name: "kube-apiserver", ips: []string{p.Address()},
		dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}}).write(p.t, p.path("apiserver"))
	writeFile(p.t, p.path("serviceaccounts.key"), encodeKey(p.t, newKey(p.t)))
}
