package tftpd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/pxed/listen"
)

// Port is where TFTP is asked for.
const Port = 69

// Interface is one network that is served.
type Interface struct {
	Name   string
	Server netip.Addr // our address on it, the source of all packets
}

// Watcher is told of every transfer when it has ended.
type Watcher interface {
	TFTP(t Transfer)
}

// Outcome is how a transfer ended.
type Outcome string

// The outcomes.
const (
	Sent    Outcome = "sent"
	Probed  Outcome = "probed"  // the client only asked for the size
	Refused Outcome = "refused" // no such file, a write, a name that leads out
	Failed  Outcome = "failed"  // the client went away
)

// Transfer is one request and what became of it.
type Transfer struct {
	Client   netip.AddrPort
	Name     string
	Outcome  Outcome
	Bytes    int
	Block    int // bytes of data in a packet
	Window   int // packets
	Resent   int // packets
	Duration time.Duration
	Err      error // of Refused and Failed
}

// Config is a server.
type Config struct {
	Interfaces []Interface
	Files      Files
	Watcher    Watcher // may be nil
	Log        *slog.Logger
	Limit      int // transfers at the same time; 0 means 128
}

// Limits of parallel transfers. A machine needs one; firmware that repeats its
// request from a new port may have two or three for a moment.
const (
	defaultLimit = 128
	hostLimit    = 16
)

// Server is a set of open ports.
type Server struct {
	cfg   Config
	ports []*port

	mu      sync.Mutex
	running map[netip.AddrPort]bool
	perHost map[netip.Addr]int
	wg      sync.WaitGroup
}

type port struct {
	Interface
	conn *net.UDPConn
	mtu  int
}

// Listen opens the port on all interfaces, or on none.
func Listen(ctx context.Context, c Config) (*Server, error) {
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	s := &Server{cfg: c, running: map[netip.AddrPort]bool{}, perHost: map[netip.Addr]int{}}
	for _, i := range c.Interfaces {
		conn, err := listen.UDP(ctx, i.Name, Port)
		if err != nil {
			s.close()
			return nil, err
		}
		s.ports = append(s.ports, &port{Interface: i, conn: conn, mtu: mtuOf(i.Name)})
	}
	return s, nil
}

func mtuOf(name string) int {
	nic, err := net.InterfaceByName(name)
	if err != nil {
		return plainBlock + overhead
	}
	return nic.MTU
}

// Serve answers until ctx ends, then breaks off what still runs and waits for it.
func (s *Server) Serve(ctx context.Context) error {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	context.AfterFunc(serving, s.close)
	for _, p := range s.ports {
		s.cfg.Log.Info("serving TFTP", "interface", p.Name, "address", p.Server)
		s.wg.Go(func() {
			if err := s.read(serving, p); err != nil {
				stop(err)
			}
		})
	}
	<-serving.Done()
	s.wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

func (s *Server) close() {
	for _, p := range s.ports {
		p.conn.Close()
	}
}

// read starts a transfer for every request until the port is closed.
func (s *Server) read(ctx context.Context, p *port) error {
	buf := make([]byte, maxRequest+1)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("reading TFTP requests on %s: %w", p.Name, err)
		}
		client := netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if !s.enter(client) {
			continue
		}
		request := append([]byte(nil), buf[:n]...)
		s.wg.Go(func() {
			defer s.leave(client)
			s.report(p, s.transfer(ctx, p, client, request))
		})
	}
}

// enter counts a transfer in. Silence is the right answer to one too many: the
// client asks again in a second. It is also right when the same client asks again
// from the same port, because our first packet was lost: it will be repeated.
func (s *Server) enter(client netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[client] || len(s.running) >= s.cfg.Limit || s.perHost[client.Addr()] >= hostLimit {
		return false
	}
	s.running[client] = true
	s.perHost[client.Addr()]++
	return true
}

func (s *Server) leave(client netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, client)
	if s.perHost[client.Addr()]--; s.perHost[client.Addr()] == 0 {
		delete(s.perHost, client.Addr())
	}
}

// transfer answers one request to its end.
func (s *Server) transfer(ctx context.Context, p *port, client netip.AddrPort, b []byte) Transfer {
	t := Transfer{Client: client, Outcome: Refused}
	conn, err := listen.Converse(p.Name, p.Server, client, plainTimeout)
	if err != nil {
		t.Outcome, t.Err = Failed, err
		return t
	}
	defer conn.Close()
	r, content, code, err := s.lookUp(client.Addr(), b)
	t.Name = r.name
	if err != nil {
		t.Err = err
		conn.Write(packError(code, err.Error())) // it is not repeated: who misses it times out
		return t
	}
	start := time.Now()
	terms := negotiate(r, len(content), p.mtu)
	sender := newSender(conn, terms, content)
	defer conn.StopWith(ctx)()
	if err = conn.Wait(terms.timeout); err == nil {
		err = sender.send(ctx)
	}
	t.Block, t.Window, t.Resent, t.Duration = terms.block, terms.window, sender.resent, time.Since(start)
	switch {
	case err == nil:
		t.Outcome, t.Bytes = Sent, len(content)
	case errors.Is(err, errProbe):
		t.Outcome = Probed
	default:
		t.Outcome, t.Err = Failed, err
	}
	return t
}

// lookUp finds what a request asks for, or the error code for its absence.
func (s *Server) lookUp(client netip.Addr, b []byte) (request, []byte, uint16, error) {
	r, err := parseRequest(b)
	switch {
	case errors.Is(err, errWrite):
		return r, nil, codeAccess, err
	case err != nil:
		return r, nil, codeIllegal, err
	}
	name, err := clean(r.name)
	if err != nil {
		return r, nil, codeAccess, err
	}
	content, err := s.cfg.Files.File(client, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil, codeNotFound, errAbsent
	case err != nil:
		s.cfg.Log.Error("reading a boot file", "name", name, "err", err)
		return r, nil, codeUndefined, errors.New("the file cannot be read")
	}
	return r, content, 0, nil
}

// errAbsent is what a client reads that asks for a file that is not served.
var errAbsent = errors.New("there is no such file here")

// autoexec is the script that iPXE asks for before anything else. It is not served:
// at that moment iPXE has no address yet, so the script could only ask DHCP for one,
// which iPXE does without a script, and is then told of pxed's by the offer.
const autoexec = "autoexec.ipxe"

func (s *Server) report(p *port, t Transfer) {
	if s.cfg.Watcher != nil {
		s.cfg.Watcher.TFTP(t)
	}
	log := s.cfg.Log.With("interface", p.Name, "client", t.Client, "name", t.Name, "outcome", string(t.Outcome))
	switch {
	case t.Outcome == Sent || t.Outcome == Probed:
		log.Info("tftp", "bytes", t.Bytes, "blksize", t.Block, "windowsize", t.Window, "resent", t.Resent, "seconds", t.Duration.Seconds())
	case path.Base(t.Name) == autoexec && errors.Is(t.Err, errAbsent):
		log.Debug("tftp", "why", "iPXE looks for a script beside itself, and goes on without")
	default:
		log.Warn("tftp", "why", t.Err)
	}
}
