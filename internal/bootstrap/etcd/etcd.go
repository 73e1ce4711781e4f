// Package etcd talks to the members of a cluster's etcd: who they are and how they
// are, the removal of one, and a snapshot of the data. Keys and connections are
// handed over: a member listens only on its own node's network, so the way there
// leads through the node.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/diag"
)

// Config says how members are reached.
type Config struct {
	// Endpoints are client URLs, such as https://10.0.2.15:2379, of members that may
	// be alive. They are tried in this order.
	Endpoints []string
	// TLS holds the client's certificate and the members' CA.
	TLS *tls.Config
	// Dial connects to host:port of an endpoint or of a member's client URL; nil
	// means directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Patience bounds one question to one member; zero means five seconds.
	Patience time.Duration
}

// Client asks members. It is safe for concurrent use; the caller closes it.
type Client struct {
	config Config

	mu   sync.Mutex
	open map[string]*clientv3.Client // by endpoint
}

// patience is how long a member may take to answer, unless the configuration says
// otherwise. One that is alive answers within milliseconds; a node under load, or
// behind SSH, within a second or two.
const patience = 5 * time.Second

// New returns a client. It connects when it is asked something.
func New(c Config) *Client {
	if c.Patience == 0 {
		c.Patience = patience
	}
	return &Client{config: c, open: map[string]*clientv3.Client{}}
}

// Close ends all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for endpoint, one := range c.open {
		errs = append(errs, one.Close())
		delete(c.open, endpoint)
	}
	return errors.Join(errs...)
}

// at is a client of one member alone. The library's own balancing between members
// would hide which of them does not answer.
func (c *Client) at(endpoint string) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.open[endpoint]; ok {
		return one, nil
	}
	config := clientv3.Config{Endpoints: []string{endpoint}, TLS: c.config.TLS, MaxUnaryRetries: 1, Logger: zap.NewNop(), DialOptions: failFast()}
	if dial := c.config.Dial; dial != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
	}
	one, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", endpoint, err)
	}
	c.open[endpoint] = one
	return one, nil
}

// failFast lets a question to a member that is not there fail at once and say why.
// The library's default is to wait for the member until the time is over, and to try
// to connect ever less often.
func failFast() []grpc.DialOption {
	again := backoff.DefaultConfig
	again.MaxDelay = time.Second
	return []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: patience}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, ask, answer any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return call(ctx, method, ask, answer, conn, append(options, grpc.WaitForReady(false))...)
		}),
	}
}

// first asks one endpoint after another until one gives an answer.
func (c *Client) first(ctx context.Context, ask func(context.Context, *clientv3.Client) error) error {
	if len(c.config.Endpoints) == 0 {
		return errors.New("etcd: no member is known to ask")
	}
	var errs []error
	for _, endpoint := range c.config.Endpoints {
		err := c.one(ctx, endpoint, ask)
		if err == nil || ctx.Err() != nil || final(err) {
			return err
		}
		errs = append(errs, fmt.Errorf("%s: %s", endpoint, reason(err)))
	}
	return diag.WithHint(fmt.Errorf("no member of etcd gives an answer: %w", errors.Join(errs...)), "a majority of the servers has to run k3s and to be reachable")
}

func (c *Client) one(ctx context.Context, endpoint string, ask func(context.Context, *clientv3.Client) error) error {
	one, err := c.at(endpoint)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, c.config.Patience)
	defer stop()
	return ask(ctx, one)
}

// final reports whether another member would give the same answer.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		rpctypes.ErrMemberNotFound, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrUnhealthy, rpctypes.ErrPermissionDenied,
	}, func(known error) bool { return errors.Is(err, known) })
}

// Remove takes a member out of the list. One that is not there any more has been
// removed: who was cut off after the removal asks again and is told that all is well.
func (c *Client) Remove(ctx context.Context, id member.ID) error {
	err := c.first(ctx, func(ctx context.Context, one *clientv3.Client) error {
		_, err := one.MemberRemove(ctx, uint64(id))
		return err
	})
	switch {
	case err == nil, errors.Is(err, rpctypes.ErrMemberNotFound):
		return nil
	case errors.Is(err, rpctypes.ErrMemberNotEnoughStarted), errors.Is(err, rpctypes.ErrUnhealthy):
		return diag.WithHint(fmt.Errorf("etcd itself refuses to remove member %s, because it would lose its quorum: %w", id, err), "mend the other members first")
	}
	return fmt.Errorf("removing member %s of etcd: %w", id, err)
}
