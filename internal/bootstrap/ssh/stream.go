package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Stream runs a command as root and gives its standard input and output. It ends
// when the command does, when it is closed, and when ctx is done.
func (h *Host) Stream(ctx context.Context, command string) (io.ReadWriteCloser, error) {
	session, err := h.session(ctx)
	if err != nil {
		return nil, err
	}
	s := &stream{host: h, command: command, session: session, said: tail{limit: 4 << 10}, ended: make(chan struct{})}
	session.Stderr = &s.said
	if err := s.open(); err != nil {
		session.Close()
		return nil, h.fail(lost(brief(command), err))
	}
	go func() {
		s.end = session.Wait()
		close(s.ended)
	}()
	s.stop = context.AfterFunc(ctx, func() { session.Close() })
	return s, nil
}

// stream is a running command.
type stream struct {
	host    *Host
	command string
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	said    tail
	stop    func() bool
	ended   chan struct{}
	end     error // of Wait, once ended is closed
}

func (s *stream) open() (err error) {
	if s.in, err = s.session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return err
	}
	return s.session.Start(s.host.sudo() + "/bin/sh -c " + Quote(s.command))
}

// Read ends with the command's error, when it has one.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err != io.EOF {
		return n, err
	}
	<-s.ended
	if why := s.host.explain(s.command, s.end, s.said.String()); why != nil {
		return n, s.host.fail(why)
	}
	return n, io.EOF
}

func (s *stream) Write(p []byte) (int, error) { return s.in.Write(p) }

// Close ends the command: it sees the end of its input, and its output is not read
// any more.
func (s *stream) Close() error {
	s.stop()
	s.in.Close()
	s.session.Close()
	return nil
}

// Dial opens a connection from the node: to an address as the node sees it ("tcp",
// 127.0.0.1:2379), or to a socket of the node that only root may open ("unix", a
// path). ctx bounds the dialling alone.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unix" {
		conn, err := h.forward(ctx, network, address)
		var no *ssh.OpenChannelError
		if !errors.As(err, &no) || no.Reason != ssh.Prohibited {
			return conn, err
		}
	}
	return h.bridge(ctx, network, address)
}

// forward lets sshd connect.
func (h *Host) forward(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.connected(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := c.client.DialContext(ctx, network, address)
	if err != nil {
		return nil, h.fail(fmt.Errorf("connecting to %s: %w", address, err))
	}
	return withDeadlines(conn, conn, network, address), nil
}

// greeting is what slipway-node connect says when it has connected.
const greeting = "connected\n"

// bridge lets a command of the node connect, as root.
func (h *Host) bridge(ctx context.Context, network, address string) (net.Conn, error) {
	s, err := h.Stream(context.WithoutCancel(ctx), "slipway-node connect --greet "+Quote(network+":"+address))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	r := bufio.NewReader(s)
	said, err := r.ReadString('\n')
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil && said != greeting {
		err = fmt.Errorf("it answers %.60q", said)
	}
	if err != nil {
		s.Close()
		return nil, h.fail(fmt.Errorf("connecting to %s: %w", address, err))
	}
	return withDeadlines(r, s, network, address), nil
}

// withDeadlines makes a net.Conn with deadlines, which the channels of SSH do not
// have: gRPC and TLS rely on them.
func withDeadlines(r io.Reader, w io.WriteCloser, network, address string) net.Conn {
	ours, theirs := net.Pipe()
	var once sync.Once
	shut := func() {
		once.Do(func() {
			theirs.Close()
			w.Close()
		})
	}
	go func() {
		io.Copy(theirs, r)
		shut()
	}()
	go func() {
		io.Copy(w, theirs)
		shut()
	}()
	return &through{Conn: ours, at: far{network, address}}
}

// through is a connection through a node.
type through struct {
	net.Conn
	at far
}

func (t *through) RemoteAddr() net.Addr { return t.at }

// far is an address as a node sees it.
type far struct{ network, address string }

func (f far) Network() string { return f.network }
func (f far) String() string  { return f.address }

// The deadlines are those of net.Pipe.
var _ interface{ SetDeadline(time.Time) error } = (*through)(nil)
