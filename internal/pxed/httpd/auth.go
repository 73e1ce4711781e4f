package httpd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// operatorKey is the context key of a connection over the unix socket whose other
// end may operate.
type operatorKey struct{}

// bearer is the token of a request, or "".
func bearer(r *http.Request) string {
	kind, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// mayOperate reports whether the request comes from an operator: over the unix
// socket from root or from who runs pxed, or with the token.
func (s *Server) mayOperate(r *http.Request) bool {
	if ok, _ := r.Context().Value(operatorKey{}).(bool); ok {
		return true
	}
	return s.token != "" && equal(bearer(r), s.token)
}

// equal compares in a time that tells nothing about either.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ConnContext marks connections of operators. It is for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, err := peer(u)
	return context.WithValue(ctx, operatorKey{}, err == nil && (uid == 0 || uid == os.Geteuid()))
}

// peer is the user at the other end of a unix socket (unix(7), SO_PEERCRED): the
// kernel says so, not the peer.
func peer(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
