package book

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/run"
)

// Begin starts a run of a story about a subject, or goes on with the one that has
// not ended. Whoever holds the run lock may call it: a run that is open then was
// killed, or stopped by an error.
func (b *Book) Begin(ctx context.Context, story, subject, owner string, now time.Time) (r *Run, resumed bool, err error) {
	if r, err = b.Look(ctx, story, subject); err != nil || r.ID != "" {
		return r, err == nil, err
	}
	fresh := run.Record{ID: strings.Join([]string{story, subject, rand.Text()[:12]}, "-"), Story: story, Subject: subject, Owner: owner, Started: now.UTC().Truncate(time.Microsecond)}
	if err := b.StartRun(ctx, fresh); err != nil {
		return nil, false, fmt.Errorf("writing the run down: %w", err)
	}
	return &Run{book: b, ID: fresh.ID, now: time.Now}, false, nil
}

// Look is the run of a story about a subject that has not ended, or one that was never
// begun: for a plan, which writes nothing.
func (b *Book) Look(ctx context.Context, story, subject string) (*Run, error) {
	open, err := b.Runs(ctx, run.Filter{Story: story, Subject: subject, Open: true})
	if err != nil {
		return nil, fmt.Errorf("looking for a run that has not ended: %w", err)
	}
	for _, one := range open {
		if one.Subject == subject { // an empty subject chooses all
			return &Run{book: b, ID: one.ID, now: time.Now}, nil
		}
	}
	return &Run{book: b, now: time.Now}, nil
}

// Run is one run in the ledger, for the steps that write into it.
type Run struct {
	ID   string // empty when it was never begun
	book *Book
	now  func() time.Time
}

// Record is the run as the ledger has it.
func (r *Run) Record(ctx context.Context) (run.Record, error) {
	if r.ID == "" {
		return run.Record{}, nil
	}
	return r.book.Run(ctx, r.ID)
}

// Note writes down how far a step has come.
func (r *Run) Note(ctx context.Context, step, state, note string) error {
	return r.book.SetStep(ctx, r.ID, run.Step{Name: step, State: state, Note: note, At: r.now().UTC().Truncate(time.Microsecond)})
}

// End writes down how the run ended. It may be said again, not taken back.
func (r *Run) End(ctx context.Context, outcome string) error {
	return r.book.EndRun(ctx, r.ID, outcome, r.now().UTC().Truncate(time.Microsecond))
}
