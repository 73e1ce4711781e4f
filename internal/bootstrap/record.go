package bootstrap

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/book"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/pxed/client"
)

// Record says where the ledger is.
type Record struct {
	Pxed     *client.Client // nil asks none
	Required bool           // it was named, and has to answer
	Dir      string         // of the ledger that is opened when no pxed answers; empty means in the state directory
}

// ledgerName is the ledger's directory in the state directory.
const ledgerName = "ledger"

// book opens the ledger when it is first needed.
func (s *Session) book(ctx context.Context) (*book.Book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger != nil {
		return s.ledger, nil
	}
	dir := s.record.Dir
	if dir == "" {
		dir = filepath.Join(s.State, ledgerName)
	}
	b, err := book.Open(ctx, book.Options{
		Environment: s.Cluster.Environment, Pxed: s.record.Pxed, Required: s.record.Required, Ledger: ledger.Options{Dir: dir},
	})
	s.ledger = b
	return b, err
}

// recorded is what the ledger knows of the cluster; nil when it knows none.
func (s *Session) recorded(ctx context.Context) (*identity.Cluster, error) {
	b, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	c, err := b.Cluster(ctx, s.Cluster.Environment)
	if errors.Is(err, book.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}
