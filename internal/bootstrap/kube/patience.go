package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/slipway/slipway/internal/payload/object"
)

// tries is how often a request is sent to a server that cannot take it: an API
// server that restarts because its node joins is back within as many seconds.
const tries = 30

// try sends a request until the server has answered it. All requests here are read
// or applied, so that sending one again does no harm.
func (c *Client) try(ctx context.Context, what string, request func() error) error {
	var err error
	for range tries {
		if err = request(); !passing(err) {
			return explain(what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last answer: %v)", what, context.Cause(ctx), err)
		case <-time.After(c.patience):
		}
	}
	return explain(what, err)
}

// passing reports whether an error may be over soon.
func passing(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return electing(status.ErrStatus.Message) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err)
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || timeout(err)
}

// electing reports whether the server passes on what etcd says while it elects a new
// leader, because the old one was lost or removed.
func electing(message string) bool {
	return slices.ContainsFunc([]string{"request timed out", "leader changed", "no leader"}, func(s string) bool {
		return strings.Contains(message, "etcdserver: "+s)
	})
}

func timeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// explain puts what was tried before an error, and says of what is not there that
// it is not, whatever the server's reason.
func explain(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return fmt.Errorf("%s: %w: %v", what, object.ErrNotFound, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
