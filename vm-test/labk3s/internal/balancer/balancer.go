// Package balancer is the port on an agent's loopback behind which the servers are:
// it passes connections on to a server that answers.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// dialTime is how long a server may take to accept a connection.
const dialTime = 3 * time.Second

// Balancer passes connections on.
type Balancer struct {
	listener net.Listener

	mu      sync.Mutex
	servers []string // host:port; the first is the one that answered last
}

// Listen opens the port. The first server is the one that the agent was told of.
func Listen(address, server string) (*Balancer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &Balancer{listener: l, servers: []string{server}}, nil
}

// Addr is where the balancer listens.
func (b *Balancer) Addr() net.Addr { return b.listener.Addr() }

// Set replaces the servers. An empty list is not believed.
func (b *Balancer) Set(servers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(servers) == 0 {
		return
	}
	current := b.servers[0]
	b.servers = slices.Clone(servers)
	if i := slices.Index(b.servers, current); i > 0 {
		b.servers[0], b.servers[i] = b.servers[i], b.servers[0]
	}
}

// Serve passes connections on until ctx ends.
func (b *Balancer) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { b.listener.Close() })
	defer stop()
	for {
		conn, err := b.listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			slog.Warn("accepting a connection", "err", err)
			continue
		}
		go b.pass(ctx, conn)
	}
}

func (b *Balancer) pass(ctx context.Context, near net.Conn) {
	defer near.Close()
	far, err := b.dial(ctx)
	if err != nil {
		slog.Warn("no server answers", "err", err)
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			io.Copy(way[1], way[0]) // how it ends is for the two ends to say
			done <- struct{}{}
		}()
	}
	<-done
}

// dial reaches the server that answered last, or the next that does.
func (b *Balancer) dial(ctx context.Context) (net.Conn, error) {
	b.mu.Lock()
	servers := slices.Clone(b.servers)
	b.mu.Unlock()
	var errs []error
	for _, s := range servers {
		d := net.Dialer{Timeout: dialTime}
		conn, err := d.DialContext(ctx, "tcp", s)
		if err == nil {
			b.prefer(s)
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (b *Balancer) prefer(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.servers, server); i > 0 {
		b.servers[0], b.servers[i] = b.servers[i], b.servers[0]
	}
}
