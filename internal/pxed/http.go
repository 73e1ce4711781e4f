package pxed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pxed/httpd"
	"github.com/slipway/slipway/internal/pxed/listen"
)

// drain is how long requests that are being answered may go on when pxed stops.
// An installer that is cut off takes its download up again.
const drain = 5 * time.Second

// openHTTP listens on the named address, or on those of the interfaces.
func (s *server) openHTTP(ctx context.Context) (func(context.Context) error, error) {
	addresses, err := httpAddresses(s.HTTP, s.nets)
	if err != nil {
		return nil, err
	}
	var open []net.Listener
	for _, a := range addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.String())
		if err != nil {
			closeAll(open)
			return nil, listen.Explain(bare(err), "tcp", a.Addr().String(), a.Port())
		}
		open = append(open, l)
		if real, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
			s.http = append(s.http, real)
		}
	}
	return func(ctx context.Context) error { return s.serveHTTP(ctx, open) }, nil
}

// bare is the system's error inside of net's.
func bare(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

func closeAll(list []net.Listener) {
	for _, l := range list {
		l.Close()
	}
}

// httpAddresses reads [ADDRESS]:PORT.
func httpAddresses(spec string, nets []network) ([]netip.AddrPort, error) {
	host, text, err := net.SplitHostPort(spec)
	port, failed := strconv.ParseUint(text, 10, 16)
	if err = errors.Join(err, failed); err != nil {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%q is no address for HTTP", spec), "such as :8080 or 192.168.1.5:8080"))
	}
	if host != "" {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("%q is no address for HTTP", spec), "name an IP address of this machine, or none for those of the interfaces"))
		}
		return []netip.AddrPort{netip.AddrPortFrom(a, uint16(port))}, nil
	}
	if len(nets) == 0 {
		return nil, exit.With(exit.Usage, diag.WithHint(errors.New("nothing to listen on"), "name an interface with -i, or an address with --http ADDRESS:PORT"))
	}
	var out []netip.AddrPort
	for _, n := range nets {
		out = append(out, netip.AddrPortFrom(n.prefix.Addr(), uint16(port)))
	}
	return out, nil
}

// serveHTTP answers on all listeners until ctx ends.
func (s *server) serveHTTP(ctx context.Context, open []net.Listener) error {
	srv := httpd.HTTPServer(s.handler, s.Log)
	failed := make(chan error, len(open))
	for _, l := range open {
		go func() { failed <- srv.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	if srv.Shutdown(closing) != nil {
		srv.Close() // what is still being answered is cut off
	}
	closeAll(open)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// openSocket listens on the unix socket of operators.
func (s *server) openSocket(ctx context.Context) (func(context.Context) error, error) {
	if s.Socket == "" {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Socket), 0o755); err != nil {
		return nil, diag.WithHint(fmt.Errorf("making the directory of the socket: %w", err), "run as root, or name another place with --socket")
	}
	if err := clearSocket(ctx, s.Socket); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.Socket)
	if err != nil {
		return nil, fmt.Errorf("opening socket: %w", err)
	}
	if err := os.Chmod(s.Socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("opening socket: %w", err)
	}
	return func(ctx context.Context) error { return s.serveHTTP(ctx, []net.Listener{l}) }, nil
}

// clearSocket removes a socket that a killed pxed has left, and refuses one that
// is answered.
func clearSocket(ctx context.Context, path string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		conn.Close()
		return diag.WithHint(fmt.Errorf("another pxed answers on %s", path), "stop it first, or give this one a socket of its own with --socket")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	st, failed := os.Lstat(path)
	if failed != nil || st.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	return os.Remove(path)
}
