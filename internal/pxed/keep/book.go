package keep

import (
	"context"
	"errors"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/run"
)

// Book is what bootstrap keeps in a ledger that pxed holds. Its errors are refusals
// where somebody can do something about them.
type Book struct{ Ledger *ledger.Ledger }

// refusal turns an error of the ledger into one for whoever asked from outside.
func refusal(err error) error {
	switch {
	case errors.Is(err, ledger.ErrUnknown):
		return &machine.Refusal{Code: desk.CodeNoRecord, Reason: err.Error()}
	case exit.Of(err) == exit.Refused:
		return &machine.Refusal{Code: machine.CodeConflict, Reason: err.Error(), Hint: diag.HintOf(err)}
	}
	return err
}

// Cluster is what was recorded of the cluster of an environment.
func (b Book) Cluster(ctx context.Context, environment string) (identity.Cluster, error) {
	c, err := b.Ledger.Cluster(ctx, environment)
	return c, refusal(err)
}

// PutCluster records a cluster, and refuses another than the recorded one.
func (b Book) PutCluster(ctx context.Context, c identity.Cluster) error {
	return refusal(b.Ledger.PutCluster(ctx, c))
}

// ForgetCluster drops the record of a cluster that is gone.
func (b Book) ForgetCluster(ctx context.Context, environment string, ca digest.Digest) error {
	return refusal(b.Ledger.ForgetCluster(ctx, environment, ca))
}

// Runs are the newest runs that a filter chooses, without their steps.
func (b Book) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	return b.Ledger.Runs(ctx, f)
}

// Run is one run with its steps.
func (b Book) Run(ctx context.Context, id string) (run.Record, error) {
	r, err := b.Ledger.Run(ctx, id)
	return r, refusal(err)
}

// StartRun writes a run down; the same ID again changes nothing.
func (b Book) StartRun(ctx context.Context, r run.Record) error { return b.Ledger.StartRun(ctx, r) }

// SetStep writes down how far a step has come.
func (b Book) SetStep(ctx context.Context, id string, s run.Step) error {
	return refusal(b.Ledger.SetStep(ctx, id, s))
}

// EndRun writes down how a run ended.
func (b Book) EndRun(ctx context.Context, id, outcome string, at time.Time) error {
	return refusal(b.Ledger.EndRun(ctx, id, outcome, at))
}
