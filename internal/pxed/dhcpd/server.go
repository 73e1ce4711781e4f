package dhcpd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// Interface is one network that is served.
type Interface struct {
	Name   string
	Config pxe.Config
	Leases lease.Config // ModeDHCP only
}

// Verdicts says what is known about a machine. It is asked for every request of a
// netboot client and answers from memory: within verdictTime for all machines that
// ask at once. Who gets no answer in time is taken for pxe.Netboot.
type Verdicts interface {
	Verdict(ctx context.Context, c pxe.Client) (pxe.Verdict, error)
}

// Store keeps leases across restarts. Save returns once they are durable: no client
// is told of an address that could be given to another after a crash. It keeps
// nothing of the slice.
type Store interface {
	Load(ctx context.Context) ([]lease.Lease, error)
	Save(ctx context.Context, leases []lease.Lease) error
}

// Counters counts decisions for metrics.
type Counters interface {
	DHCP(firmware string, gave string)
}

// Config is a server.
type Config struct {
	Interfaces []Interface
	Verdicts   Verdicts // nil: pxe.Netboot for everybody
	Store      Store    // nil: leases live as long as the process
	Counters   Counters // may be nil
	Log        *slog.Logger
}

// Server is a set of open ports.
type Server struct {
	cfg   Config
	links []*link
}

// Times within which the other parts of pxed must answer: firmware asks again
// after 4 s and has forgotten us after a minute.
const (
	verdictTime = time.Second
	saveTime    = 5 * time.Second
)

// Listen opens the ports of all interfaces, or none: an error names the port that
// could not be had, and why.
func Listen(ctx context.Context, c Config) (*Server, error) {
	s := &Server{cfg: c}
	for _, i := range c.Interfaces {
		l, err := s.open(ctx, i)
		if err != nil {
			s.close()
			return nil, err
		}
		s.links = append(s.links, l)
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, i Interface) (*link, error) {
	nic, err := net.InterfaceByName(i.Name)
	if err != nil {
		_, err = listen.Address(i.Name)
		return nil, err
	}
	l := &link{Interface: i, server: s, log: s.cfg.Log.With("interface", i.Name)}
	if l.leases, err = s.table(ctx, i); err != nil {
		return nil, fmt.Errorf("interface %s: %w", i.Name, err)
	}
	for _, port := range []uint16{pxe.PortServer, pxe.PortPXE} {
		conn, err := listen.UDP(ctx, i.Name, port)
		if err != nil {
			l.closePorts()
			return nil, err
		}
		l.ports = append(l.ports, port)
		l.conns = append(l.conns, conn)
	}
	if l.frames, err = openFrames(nic); err != nil {
		l.log.Info("answering machines without an address by broadcast", "why", err)
	}
	return l, nil
}

// table is the leases of an interface; nil for a proxy, which has none.
func (s *Server) table(ctx context.Context, i Interface) (*lease.Table, error) {
	if i.Config.Mode != pxe.ModeDHCP {
		return nil, nil
	}
	var kept []lease.Lease
	if s.cfg.Store != nil {
		var err error
		if kept, err = s.cfg.Store.Load(ctx); err != nil {
			return nil, fmt.Errorf("loading leases: %w", err)
		}
	}
	return lease.New(i.Leases, kept)
}

// Serve answers until ctx ends, or until an interface goes away, which is an
// error. Requests that are being answered then are finished.
//
// Each port has one reader. Several would take the packets of a burst from each
// other, and an answer would cost half as much again.
func (s *Server) Serve(ctx context.Context) error {
	defer s.close()
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for _, l := range s.links {
		l.log.Info("serving DHCP", "mode", l.Config.Mode, "address", l.Config.Server)
		for i, conn := range l.conns {
			running.Go(func() {
				if err := l.read(serving, conn, l.ports[i]); err != nil {
					stop(err)
				}
			})
		}
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

// closePorts ends the readers.
func (s *Server) closePorts() {
	for _, l := range s.links {
		l.closePorts()
	}
}

// close gives everything back; nobody may be sending any more.
func (s *Server) close() {
	s.closePorts()
	for _, l := range s.links {
		l.frames.close()
	}
}

// Followed tells that a machine did what it was offered, such as asking for its
// script; it is then not taken for one whose firmware ignores pxed.
func (s *Server) Followed(mac cluster.MAC) {
	for _, l := range s.links {
		l.followed(mac)
	}
}

// Owner is the machine that has an address, as far as it was heard: of TFTP
// requests nothing but the address is known.
func (s *Server) Owner(addr netip.Addr) (cluster.MAC, bool) {
	for _, l := range s.links {
		if mac, ok := l.owner(addr); ok {
			return mac, true
		}
	}
	return "", false
}

// Script is what to send by TFTP, instead of a boot loader, to who has an address:
// see pxe.Script. It is nil when iPXE does not speak there.
func (s *Server) Script(addr netip.Addr) []byte {
	for _, l := range s.links {
		if script := l.script(addr); script != nil {
			return script
		}
	}
	return nil
}

// Leases lists the leases of all interfaces.
func (s *Server) Leases() []lease.Lease {
	var out []lease.Lease
	for _, l := range s.links {
		out = append(out, l.all()...)
	}
	return out
}
