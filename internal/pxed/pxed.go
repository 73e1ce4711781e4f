// Package pxed netboots machines, knows each of them, and lets exactly the armed
// one be imaged exactly once. It is the story of the program: a verified build, a
// desk that decides, and listeners that start and stop together.
package pxed

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/artifact"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
	"github.com/slipway/slipway/internal/pxed/build"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/dhcpd"
	"github.com/slipway/slipway/internal/pxed/httpd"
	"github.com/slipway/slipway/internal/pxed/metrics"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/tftpd"
	"github.com/slipway/slipway/internal/pxed/web"
	"github.com/slipway/slipway/internal/pxed/wol"
)

// Options are what a pxed serves, to whom, and where.
type Options struct {
	Cluster    cluster.Cluster
	Image      string            // directory of the build
	Key        ed25519.PublicKey // that must have signed it
	Interfaces []string          // that are served; none: HTTP only
	Mode       pxe.Mode
	Pool       Pool            // ModeDHCP: addresses to give; zero: the upper half of the network
	Force      bool            // ModeDHCP: also beside another DHCP server
	HTTP       string          // [ADDRESS]:PORT; without an address: on those of the interfaces
	Also       []string        // base URLs of other pxed with the same ledger, for installers when this one is away
	Socket     string          // unix socket of operators; "" for none
	Token      string          // of operators; "" lets nobody in by token
	Ledger     desk.Ledger     // where everything is kept
	Members    desk.Members    // of the ledger; may be nil
	Leases     dhcpd.Store     // where leases are kept; nil: nowhere
	Book       httpd.Book      // what bootstrap keeps here; nil: nothing
	Discover   bool            // machines of no node may be started to report
	Local      httpd.LocalBoot // how BIOS machines are sent to their disk
	Log        *slog.Logger
	Progress   progress.Reporter
	// Started is told the addresses of HTTP when everything is open.
	Started func(addresses []netip.AddrPort)
}

// Pool is a range of addresses, both ends included.
type Pool struct{ First, Last netip.Addr }

// server is a running pxed.
type server struct {
	Options
	build   *build.Build
	desk    *desk.Desk
	metrics *metrics.Metrics
	handler http.Handler
	closing chan struct{} // ends the event streams
	nets    []network     // of the interfaces
	alone   func() error  // waits until it is known whether there is another DHCP server
	http    []netip.AddrPort
	dhcp    *dhcpd.Server
}

// Serve verifies the build and serves it until ctx ends or a listener fails; then
// all of them stop.
func Serve(ctx context.Context, o Options) error {
	s := &server{Options: o, closing: make(chan struct{})}
	var err error
	if s.nets, err = networks(o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.alone = s.rivals(ctx) // while the build is verified
	if s.build, err = build.Open(ctx, o.Image, o.Key, o.Progress); err != nil {
		return err
	}
	defer s.build.Close()
	if err := s.check(); err != nil {
		return err
	}
	if err := s.assemble(); err != nil {
		return err
	}
	return s.run(ctx)
}

// check refuses a build that was made for something else, or lacks what machines
// are started with.
func (s *server) check() error {
	x := s.build.Index
	if x.Environment != s.Cluster.Environment || x.Cluster != s.Cluster.Name {
		err := fmt.Errorf("the build is of %s (cluster %s), the profile is %s (cluster %s)", x.Environment, x.Cluster, s.Cluster.Environment, s.Cluster.Name)
		return exit.With(exit.Usage, diag.WithHint(err, "serve the build that was made from this profile: imagebuild build -p PROFILE"))
	}
	for _, role := range []artifact.Role{artifact.RoleKernel, artifact.RoleInstaller, artifact.RoleDiskZstd} {
		if _, ok := x.One(role); !ok {
			err := fmt.Errorf("the build has no file of the role %s: nothing can be installed from it", role)
			return exit.With(exit.Usage, diag.WithHint(err, "build it again with this version of imagebuild"))
		}
	}
	return nil
}

// assemble puts desk, API, page and numbers together.
func (s *server) assemble() error {
	var wake func(context.Context, cluster.MAC) error
	if len(s.nets) > 0 {
		wake = s.wake
	}
	s.desk = desk.New(desk.Options{
		Cluster: s.Cluster, Ledger: s.Ledger, Members: s.Members, Discover: s.Discover, Now: time.Now, Wake: wake, Log: s.Log,
		Image: desk.Image{Name: s.build.Index.Name, Index: s.build.Digest, Plan: s.build.Index.Plan, Key: s.build.Key},
	})
	s.metrics = metrics.New(s.desk.States)
	page, err := web.New(s.desk, s.closing)
	if err != nil {
		return err
	}
	s.handler = httpd.New(httpd.Options{
		Desk: s.desk, Build: s.build, Token: s.Token, Local: s.Local, Console: consoles(s.Cluster), Also: s.Also, Log: s.Log,
		Counter: s.metrics, Page: page, Metrics: s.metrics.Handler(), Book: s.Book, Closing: s.closing, Booted: s.booted,
	})
	return nil
}

// consoles are the kernel arguments that make the installer speak where the node
// will speak.
func consoles(c cluster.Cluster) []string {
	var out []string
	for _, name := range c.System.ExtraConsole {
		out = append(out, "console="+name)
	}
	return out
}

// booted tells the DHCP side that a machine went on as it was told to.
func (s *server) booted(mac cluster.MAC) {
	if s.dhcp != nil {
		s.dhcp.Followed(mac)
	}
}

// wake sends the packet out of every served interface: where a sleeping machine
// is plugged in nobody knows.
func (s *server) wake(ctx context.Context, mac cluster.MAC) error {
	for _, n := range s.nets {
		if err := wol.Wake(ctx, n.name, mac); err != nil {
			return err
		}
	}
	return nil
}

// listener is something that is opened, then served until its context ends.
type listener struct {
	name string
	open func(ctx context.Context) (serve func(ctx context.Context) error, err error)
}

// listeners, in the order in which they are opened: a machine is sent on only to
// what is there already, so DHCP, which sends it to TFTP and HTTP, is last.
func (s *server) listeners() []listener {
	list := []listener{
		{"http", s.openHTTP},
		{"socket", s.openSocket},
		{"clock", s.openClock},
	}
	if len(s.nets) > 0 {
		list = append(list, listener{"tftp", s.openTFTP}, listener{"dhcp", s.openDHCP})
	}
	return list
}

// run opens all listeners, or none, and serves until the first of them ends.
func (s *server) run(ctx context.Context) error {
	opening, abort := context.WithCancel(ctx)
	defer abort()
	group, serving := errgroup.WithContext(ctx)
	var serve []func(context.Context) error
	for _, l := range s.listeners() {
		f, err := l.open(opening)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, stopAll(serve, err))
		}
		serve = append(serve, f)
	}
	for _, f := range serve {
		group.Go(func() error { return f(serving) })
	}
	context.AfterFunc(serving, func() { close(s.closing) })
	s.Log.Info("serving", "image", s.build.Index.Name, "index", s.build.Digest.Short(), "environment", s.Cluster.Environment,
		"status", string(s.Cluster.Status), "mode", string(s.Mode), "http", fmt.Sprint(s.http))
	if s.Started != nil {
		s.Started(s.http)
	}
	return group.Wait()
}

// stopAll lets what is open already close again: it is served with a context that
// has ended.
func stopAll(serve []func(context.Context) error, err error) error {
	ended, stop := context.WithCancel(context.Background())
	stop()
	for _, f := range serve {
		if f != nil {
			_ = f(ended)
		}
	}
	return err
}

// openClock lets time pass for the desk.
func (s *server) openClock(context.Context) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			// A ledger that does not answer now may answer in a second; every
			// request that needs it says so in the meantime.
			if err := s.desk.Tick(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("the ledger does not answer", "error", err)
			}
		}
	}, nil
}

// openTFTP serves the boot loaders.
func (s *server) openTFTP(ctx context.Context) (func(context.Context) error, error) {
	c := tftpd.Config{Files: scripted{newBootFiles(s.build), s}, Watcher: watcher{s.metrics}, Log: s.Log}
	for _, n := range s.nets {
		c.Interfaces = append(c.Interfaces, tftpd.Interface{Name: n.name, Server: n.prefix.Addr()})
	}
	t, err := tftpd.Listen(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.Serve, nil
}

// watcher counts transfers.
type watcher struct{ m *metrics.Metrics }

// TFTP implements tftpd.Watcher.
func (w watcher) TFTP(t tftpd.Transfer) { w.m.TFTP(string(t.Outcome), t.Bytes) }
