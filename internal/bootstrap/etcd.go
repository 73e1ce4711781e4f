package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"

	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// Where a server of k3s keeps what lets a client talk to its etcd, and where that
// listens (docs.k3s.io, "Requirements").
const (
	etcdTLS  = k3sconf.DataDir + "/server/tls/etcd"
	etcdPort = 2379
)

// etcd makes a client that goes through a server: with the certificate that lies
// there, held in memory, and from its network.
func (s *Session) etcd(ctx context.Context, via string) (*etcd.Client, error) {
	host := s.node(via)
	read := func(name string) []byte {
		data, err := host.Get(ctx, path.Join(etcdTLS, name))
		if err != nil {
			return nil
		}
		return data
	}
	pair, err := tls.X509KeyPair(read("client.crt"), read("client.key"))
	if err != nil {
		return nil, fmt.Errorf("%s has no certificate for etcd that can be read in %s", via, etcdTLS)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read("server-ca.crt")) {
		return nil, errors.New(via + " has no authority of etcd in " + etcdTLS)
	}
	return etcd.New(etcd.Config{
		Endpoints: s.endpoints(via), Dial: host.Dial,
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	}), nil
}

// endpoints are the client URLs of all servers, that of via first, by loopback.
func (s *Session) endpoints(via string) []string {
	port := strconv.Itoa(etcdPort)
	out := []string{"https://" + net.JoinHostPort("127.0.0.1", port)}
	for _, n := range s.Cluster.Servers() {
		if a := n.Address(); n.Name != via && a.IsValid() {
			out = append(out, "https://"+net.JoinHostPort(a.String(), port))
		}
	}
	return out
}

// members is the state of etcd, as asked through a server.
func (s *Session) members(ctx context.Context, via string) (member.State, error) {
	c, err := s.etcd(ctx, via)
	if err != nil {
		return member.State{}, err
	}
	defer c.Close()
	return c.State(ctx)
}
