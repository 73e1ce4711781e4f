// Package kube talks to a Kubernetes API server: it makes objects be as they are
// wanted by server-side apply, tells what would change by the server's own dry run,
// and counts what it asks. Objects are values of package object.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway/slipway/internal/diag"
)

// Manager is the field manager under which objects are applied. It stays the same
// for ever: the server knows by it which fields are ours to change and to remove.
const Manager = "slipway"

// requestTimeout bounds one request. The slowest are definitions of some hundred
// kilobytes on a server that has just started.
const requestTimeout = 60 * time.Second

// Dialer reaches the API server another way than by this machine's network, such as
// through a node.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Client talks to one API server. It can be used by several goroutines.
type Client struct {
	config   *rest.Config // how to log in is in its Transport
	cached   discovery.CachedDiscoveryInterface
	mapper   meta.ResettableRESTMapper
	objects  dynamic.Interface
	metadata metadata.Interface
	requests *atomic.Int64
	patience time.Duration // between two tries of a request that the server could not take
}

// New makes a client from a kubeconfig's bytes. Nothing is asked yet. dial may be nil.
func New(kubeconfig []byte, dial Dialer) (*Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		// The text of a kubeconfig is a secret, and errors of its reader may quote it.
		return nil, diag.WithHint(errors.New("the kubeconfig cannot be read"), "it must name a server and a client certificate or token, as k3s writes it")
	}
	if config.ExecProvider != nil || config.AuthProvider != nil {
		return nil, diag.WithHint(errors.New("the kubeconfig starts a program to log in"), "use one with a client certificate or a token")
	}
	c := &Client{requests: &atomic.Int64{}, patience: time.Second}
	config.Dial = dial
	config.UserAgent = Manager
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, c.requests} })
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	c.config = &rest.Config{Host: server.String(), Transport: transport, Timeout: requestTimeout,
		QPS:            -1,                // the server's own fairness is the limit
		WarningHandler: rest.NoWarnings{}, // they are about upstream manifests; nobody here can mend them
	}
	return c, c.connect()
}

func (c *Client) connect() error {
	shared, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return fmt.Errorf("kubernetes client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, shared)
	if err != nil {
		return fmt.Errorf("kubernetes client: %w", err)
	}
	c.cached = memory.NewMemCacheClient(disco)
	c.mapper = &kinds{ResettableRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(c.cached)}
	if c.objects, err = dynamic.NewForConfigAndClient(c.config, shared); err != nil {
		return fmt.Errorf("kubernetes client: %w", err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), shared); err != nil {
		return fmt.Errorf("kubernetes client: %w", err)
	}
	return nil
}

// counter counts requests on their way out.
type counter struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// Requests is how many requests have been sent so far, those of Config's users
// among them.
func (c *Client) Requests() int64 { return c.requests.Load() }

// Config is how to reach the server, for a library that brings its own client. All
// its users share one connection; a dialer in a rest.Config would cost a connection
// for each kind.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kinds are the kinds that the server knows, as they are remembered here.
func (c *Client) Kinds() (discovery.CachedDiscoveryInterface, meta.ResettableRESTMapper) {
	return c.cached, c.mapper
}

// Server is the address of the API server.
func (c *Client) Server() string { return c.config.Host }
