package pxed

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pxed/dhcpd/rival"
	"github.com/slipway/slipway/internal/pxed/pxe"
)

// rivals looks for other DHCP servers on the networks that pxed is about to give
// addresses on. A mode that was mixed up would otherwise put a whole house offline.
// What it returns waits for the result, and refuses; with Force it is only logged.
func (s *server) rivals(ctx context.Context) (wait func() error) {
	if s.Mode != pxe.ModeDHCP {
		return func() error { return nil }
	}
	looking, stop := context.WithTimeout(ctx, rival.Patience)
	group, looking := errgroup.WithContext(looking)
	for _, n := range s.nets {
		group.Go(func() error { return s.rivalOn(looking, n) })
	}
	done := make(chan error, 1)
	go func() {
		defer stop()
		done <- group.Wait()
	}()
	if s.Force {
		return func() error { return nil }
	}
	return func() error { return <-done }
}

func (s *server) rivalOn(ctx context.Context, n network) error {
	found, ok, err := rival.Find(ctx, n.name)
	switch {
	case err != nil:
		s.Log.Warn("cannot look for other DHCP servers", "interface", n.name, "error", err)
		return nil
	case !ok:
		return nil
	case s.Force:
		s.Log.Warn("another DHCP server answers on this network: machines may get addresses from either", "interface", n.name, "server", found.String())
		return nil
	}
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf("another DHCP server answers on %s: %s", n.name, found),
		"serve beside it with --mode proxy; with --force both give addresses, which is right only when their pools differ and both are meant"))
}
