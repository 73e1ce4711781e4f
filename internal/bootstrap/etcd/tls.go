package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Files of k3s on a server by which a client of its etcd is known.
const (
	CAFile   = "/var/lib/rancher/k3s/server/tls/etcd/server-ca.crt"
	CertFile = "/var/lib/rancher/k3s/server/tls/etcd/client.crt"
	KeyFile  = "/var/lib/rancher/k3s/server/tls/etcd/client.key"
)

// TLS makes the configuration of a client from the contents of those files. They stay
// in memory; no error quotes them.
func TLS(ca, cert, key []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA of etcd holds no certificate")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the client's certificate of etcd: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}
