// Package member runs one member of an etcd cluster inside the process.
package member

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// Files are the PEM files of one side of a TLS connection; both sides present a
// certificate of the same CA. All empty means plain HTTP.
type Files struct{ CA, Cert, Key string }

func (f Files) info() transport.TLSInfo {
	if f.CA == "" {
		return transport.TLSInfo{}
	}
	return transport.TLSInfo{TrustedCAFile: f.CA, CertFile: f.Cert, KeyFile: f.Key, ClientCertAuth: true}
}

// Config is what a member has to know before it starts.
type Config struct {
	Name    string
	Dir     string   // its data; made when absent
	Clients []string // URLs for clients; the last one is the advertised one
	Peer    string   // URL for the other members
	Metrics string   // URL without TLS for health and metrics; "" means none

	// Initial lists all members, "n1=https://a:2380,n2=...", and counts only while
	// Dir is empty. Joining says that the others form a cluster already.
	Initial string
	Joining bool

	ClientTLS, PeerTLS Files

	// Heartbeat and Election are etcd's own, 100 ms and 1 s, when zero. Emulated
	// processors need more.
	Heartbeat, Election time.Duration

	// Forget makes the member the only one of a new cluster, with the old data.
	Forget bool

	// NoFsync trades the safety of the data at a power cut for speed. A killed
	// process loses nothing.
	NoFsync bool
}

// ErrRemoved is wrapped by the error of a member that is none any more. A member of
// etcd stops by itself for no other reason.
var ErrRemoved = errors.New("the member has been removed from its cluster")

// Start starts the member and waits until it serves, which needs a quorum.
func Start(ctx context.Context, c Config) (*embed.Etcd, error) {
	cfg, err := c.embedded()
	if err != nil {
		return nil, err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd member %s: %w", c.Name, err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = ErrRemoved
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("starting etcd member %s: %w", c.Name, err)
}

// Wait waits until ctx ends or the member does, and says why.
func Wait(ctx context.Context, e *embed.Etcd) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.Server.StopNotify():
		return ErrRemoved
	case err := <-e.Err():
		return fmt.Errorf("etcd: %w", err)
	}
}

func (c Config) embedded() (*embed.Config, error) {
	peer, err := parse(c.Peer)
	if err != nil {
		return nil, err
	}
	clients, err := parse(c.Clients...)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = c.Name, c.Dir
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = clients, clients[len(clients)-1:]
	cfg.InitialCluster = c.Initial
	if c.Joining {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	cfg.ClientTLSInfo, cfg.PeerTLSInfo = c.ClientTLS.info(), c.PeerTLS.info()
	cfg.UnsafeNoFsync, cfg.ForceNewCluster = c.NoFsync, c.Forget
	cfg.LogLevel = "warn"
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // without it every request is slow
	if c.Heartbeat > 0 {
		cfg.TickMs = uint(c.Heartbeat.Milliseconds())
	}
	if c.Election > 0 {
		cfg.ElectionMs = uint(c.Election.Milliseconds())
	}
	if c.Metrics != "" {
		cfg.ListenMetricsUrls, err = parse(c.Metrics)
	}
	return cfg, err
}

func parse(urls ...string) ([]url.URL, error) {
	out := make([]url.URL, 0, len(urls))
	for _, s := range urls {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%q is not a URL of etcd", s)
		}
		out = append(out, *u)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("an etcd member needs a URL for clients")
	}
	return out, nil
}
