package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/run"
)

// Run is one execution of a story.
type Run = run.Record

// Step is how far one step of a run has come. Stories choose the states.
type Step = run.Step

// StartRun writes a run down. The same ID again is the same run and changes nothing.
func (l *Ledger) StartRun(ctx context.Context, r Run) error {
	return l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return exec(ctx, tx, "INSERT INTO runs (id, story, subject, plan, owner, started, ended, outcome) VALUES (?, ?, ?, ?, ?, ?, 0, '') ON CONFLICT (id) DO NOTHING",
			r.ID, r.Story, r.Subject, r.Plan.String(), r.Owner, micros(r.Started))
	})
}

// SetStep writes down how far a step has come; the last word counts.
func (l *Ledger) SetStep(ctx context.Context, id string, s Step) error {
	return l.ofRun(ctx, id, `INSERT INTO steps (run, name, state, at, note) SELECT id, ?, ?, ?, ? FROM runs WHERE id = ?
		ON CONFLICT (run, name) DO UPDATE SET state = excluded.state, at = excluded.at, note = excluded.note`, s.Name, s.State, micros(s.At), s.Note, id)
}

// EndRun writes down how a run ended. It may be said again, not taken back.
func (l *Ledger) EndRun(ctx context.Context, id, outcome string, at time.Time) error {
	return l.ofRun(ctx, id, "UPDATE runs SET ended = CASE WHEN ended = 0 THEN ? ELSE ended END, outcome = CASE WHEN ended = 0 THEN ? ELSE outcome END WHERE id = ?", micros(at), outcome, id)
}

func (l *Ledger) ofRun(ctx context.Context, id, statement string, args ...any) error {
	return l.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("run %s: %w", id, ErrUnknown)
	})
}

// Run is one run with its steps, in the order in which they came to their states.
func (l *Ledger) Run(ctx context.Context, id string) (Run, error) {
	found, err := l.runs(ctx, "WHERE id = ?", id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("run %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return Run{}, err
	}
	r := found[0]
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		r.Steps, err = steps(ctx, db, id)
		return err
	})
	return r, err
}

// Runs are the newest runs that a filter chooses, without their steps, the newest first.
func (l *Ledger) Runs(ctx context.Context, f run.Filter) ([]Run, error) {
	if f.Limit <= 0 {
		f.Limit = run.DefaultLimit
	}
	const chosen = "WHERE (? = '' OR story = ?) AND (? = '' OR subject = ?) AND (? = 0 OR ended = 0) ORDER BY started DESC, id LIMIT ?"
	return l.runs(ctx, chosen, f.Story, f.Story, f.Subject, f.Subject, f.Open, f.Limit)
}

func (l *Ledger) runs(ctx context.Context, rest string, args ...any) (out []Run, err error) {
	err = l.read(ctx, func(ctx context.Context, db *sql.DB) error {
		out = nil
		rows, err := db.QueryContext(ctx, "SELECT id, story, subject, plan, owner, started, ended, outcome FROM runs "+rest, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r Run
			var plan string
			var started, ended int64
			if err := rows.Scan(&r.ID, &r.Story, &r.Subject, &plan, &r.Owner, &started, &ended, &r.Outcome); err != nil {
				return err
			}
			if err := r.Plan.UnmarshalText([]byte(plan)); err != nil {
				return err
			}
			r.Started, r.Ended = fromMicros(started), fromMicros(ended)
			out = append(out, r)
		}
		return rows.Err()
	})
	return out, err
}

func steps(ctx context.Context, db *sql.DB, id string) ([]Step, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, state, at, note FROM steps WHERE run = ? ORDER BY at, name", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Step
	for rows.Next() {
		var s Step
		var at int64
		if err := rows.Scan(&s.Name, &s.State, &at, &s.Note); err != nil {
			return nil, err
		}
		s.At = fromMicros(at)
		out = append(out, s)
	}
	return out, rows.Err()
}
