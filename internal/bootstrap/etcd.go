package bootstrap

import (
	"context"
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
	config, err := etcd.TLS(read("server-ca.crt"), read("client.crt"), read("client.key"))
	if err != nil {
		return nil, fmt.Errorf("what %s has in %s: %w", via, etcdTLS, err)
	}
	return etcd.New(etcd.Config{
		Endpoints: s.endpoints(via), Dial: host.Dial, TLS: config,
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
