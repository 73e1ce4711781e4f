// Package book is the ledger as bootstrap uses it: that of a running pxed, by its
// API, or the same one opened here when no pxed runs. Both answer alike.
package book

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/run"
)

// ErrUnknown: what was asked for is not in the ledger.
var ErrUnknown = errors.New("not in the ledger")

// Options say where the ledger is looked for.
type Options struct {
	Environment string         // of the profile
	Pxed        *client.Client // asked first; nil means that there is none
	Required    bool           // a pxed was named and has to answer: the ledger is not opened here
	Ledger      ledger.Options // opened when no pxed answers
}

// keeper is what both ways have in common.
type keeper interface {
	Cluster(ctx context.Context, environment string) (identity.Cluster, error)
	PutCluster(ctx context.Context, c identity.Cluster) error
	ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error
	Runs(ctx context.Context, f run.Filter) ([]run.Record, error)
	Run(ctx context.Context, id string) (run.Record, error)
	StartRun(ctx context.Context, r run.Record) error
	SetStep(ctx context.Context, id string, s run.Step) error
	EndRun(ctx context.Context, id, outcome string, at time.Time) error
}

// Book is an open ledger. The caller closes it.
type Book struct {
	keeper
	ledger *ledger.Ledger // nil when pxed has it
	pxed   *client.Client // nil when it is opened here
}

// Open finds the ledger. A pxed that answers has it, and one of another environment
// is refused. When there is none, the ledger is opened here; its own lock keeps two
// from doing so.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Pxed != nil {
		found, err := ask(ctx, o)
		if found || err != nil {
			return &Book{keeper: o.Pxed, pxed: o.Pxed}, err
		}
	}
	l, err := ledger.Open(ctx, o.Ledger)
	if errors.Is(err, ledger.ErrInUse) {
		return nil, diag.WithHint(err, "when a pxed has it, let its socket be reached: run as the user who runs pxed, or name it with --server and --token-file")
	}
	if err != nil {
		return nil, err
	}
	return &Book{keeper: l, ledger: l}, nil
}

// ask reports whether a pxed answers that serves our environment. One that does not
// answer is no error, unless it has to.
func ask(ctx context.Context, o Options) (bool, error) {
	st, err := o.Pxed.Status(ctx)
	switch {
	case err == nil && st.Environment != o.Environment:
		err := fmt.Errorf("pxed serves the environment %s, the profile is %s", st.Environment, o.Environment)
		return false, exit.With(exit.Usage, diag.WithHint(err, "name the pxed of this environment with --server, or another profile with -p"))
	case err == nil:
		return true, nil
	case o.Required || answered(err):
		return false, err
	}
	return false, nil
}

// answered reports whether an error is an answer, such as that our token is wrong.
func answered(err error) bool {
	var no *client.Refused
	return errors.As(err, &no)
}

// Pxed is the pxed that has the ledger; nil when it is opened here. Machines are
// armed there.
func (b *Book) Pxed() *client.Client { return b.pxed }

// Close ends the use of the ledger.
func (b *Book) Close() error {
	if b.ledger == nil {
		return nil
	}
	return b.ledger.Close()
}

// known brings both ways of saying that there is nothing to one.
func known(err error) error {
	var no *client.Refused
	if errors.Is(err, ledger.ErrUnknown) || errors.As(err, &no) && no.Status == http.StatusNotFound {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// Cluster is what was recorded of the cluster of an environment, or ErrUnknown.
func (b *Book) Cluster(ctx context.Context, environment string) (identity.Cluster, error) {
	c, err := b.keeper.Cluster(ctx, environment)
	return c, known(err)
}

// Known is the same, and nil when nothing was recorded.
func (b *Book) Known(ctx context.Context, environment string) (*identity.Cluster, error) {
	c, err := b.Cluster(ctx, environment)
	if errors.Is(err, ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// ForgetCluster drops the record of a cluster that is gone. ErrUnknown says that
// another one is recorded.
func (b *Book) ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error {
	return known(b.keeper.ForgetCluster(ctx, environment, ca))
}

// Run is one run with its steps, or ErrUnknown.
func (b *Book) Run(ctx context.Context, id string) (run.Record, error) {
	r, err := b.keeper.Run(ctx, id)
	return r, known(err)
}

// SetStep writes down how far a step has come.
func (b *Book) SetStep(ctx context.Context, id string, s run.Step) error {
	return known(b.keeper.SetStep(ctx, id, s))
}

// EndRun writes down how a run ended.
func (b *Book) EndRun(ctx context.Context, id, outcome string, at time.Time) error {
	return known(b.keeper.EndRun(ctx, id, outcome, at))
}
