package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
)

// Limits of the port. Reading a request's head may take this long; answers may take
// for ever, as those to watches do.
const (
	headTime = 32 * time.Second
	idleTime = 90 * time.Second
)

// Listen opens the port. Certificates of clients are asked for and judged by whom
// they concern: the supervisor or the API server.
func Listen(address string, serving pki.Pair) (net.Listener, error) {
	cert, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequestClientCert,
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}), nil
}

// Serve answers on the listener until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	// Watches never end by themselves; whoever has one asks again elsewhere.
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
