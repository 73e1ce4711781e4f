package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Runner goes through steps. Now is its clock; On hears every event, in order and
// never two at a time.
type Runner struct {
	Now func() time.Time
	On  func(Event)
}

// Plan looks at every step and changes nothing. It returns how many steps would do
// something. It ends at the first step that refuses.
func (r Runner) Plan(ctx context.Context, steps []Step) (pending int, err error) {
	for _, s := range steps {
		does, err := r.plan(ctx, s)
		if err != nil {
			r.tell(s, Event{Kind: Failed, Words: err.Error()})
			return pending, stepError(s, err)
		}
		if does {
			pending++
		}
	}
	return pending, nil
}

func (r Runner) plan(ctx context.Context, s Step) (does bool, err error) {
	changes, unseen, err := r.foresee(ctx, s)
	if err != nil {
		return false, err
	}
	if len(changes) == 0 {
		r.tell(s, Event{Kind: Skipped})
		return false, nil
	}
	watched, err := s.watched(ctx)
	if err != nil {
		return false, err
	}
	if watched {
		r.tell(s, Event{Kind: Drifted, Changes: changes})
		return false, nil
	}
	r.tell(s, Event{Kind: Planned, Changes: changes, Unseen: unseen})
	return true, nil
}

func (r Runner) foresee(ctx context.Context, s Step) (changes []Change, unseen bool, err error) {
	changes, err = s.Observe(ctx)
	if errors.Is(err, ErrUnseen) {
		return s.Blind, true, nil
	}
	return changes, false, err
}

// Run makes every step true, in order, and stops at the first that fails. It returns
// how many steps did something.
func (r Runner) Run(ctx context.Context, steps []Step) (did int, err error) {
	for _, s := range steps {
		acted, err := r.step(ctx, s)
		if acted {
			did++
		}
		if err != nil {
			r.tell(s, Event{Kind: Failed, Words: err.Error()})
			return did, stepError(s, err)
		}
	}
	return did, nil
}

func (r Runner) step(ctx context.Context, s Step) (acted bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	changes, err := s.Observe(ctx)
	if err != nil {
		return false, err
	}
	if len(changes) == 0 {
		r.tell(s, Event{Kind: Skipped})
		return false, nil
	}
	if watched, err := s.watched(ctx); err != nil {
		return false, err
	} else if watched {
		r.tell(s, Event{Kind: Drifted, Changes: changes})
		return false, nil
	}
	if s.Do == nil {
		return false, fmt.Errorf("%s", summary(changes))
	}
	since := r.Now()
	e := Event{Since: &since}
	if s.Deadline > 0 {
		until := since.Add(s.Deadline)
		e.Deadline = &until
	}
	if err := r.do(ctx, s, e, changes); err != nil {
		return true, err
	}
	e.Kind = Done
	r.tell(s, e)
	return true, nil
}

// do acts and looks again: a success is what was observed.
func (r Runner) do(ctx context.Context, s Step, e Event, changes []Change) error {
	if s.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Deadline, &LateError{Limit: s.Deadline})
		defer cancel()
	}
	started := e
	started.Kind, started.Changes = Started, changes
	r.tell(s, started)
	err := s.Do(ctx, func(words string) {
		e.Kind, e.Words = Waiting, words
		r.tell(s, e)
	})
	if err != nil {
		return late(ctx, err, e.Words)
	}
	left, err := s.Observe(ctx)
	if err != nil {
		return fmt.Errorf("looking again: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("done, and still: %s", summary(left))
	}
	return nil
}

// LateError says that a step did not become true before its deadline.
type LateError struct {
	Limit time.Duration
	Last  string // what the step waited for
}

func (e *LateError) Error() string {
	if e.Last == "" {
		return fmt.Sprintf("not done within %s", e.Limit)
	}
	return fmt.Sprintf("not done within %s; it was waiting: %s", e.Limit, e.Last)
}

// late turns whatever a step says when its deadline has passed into a LateError.
func late(ctx context.Context, err error, last string) error {
	var l *LateError
	if errors.As(context.Cause(ctx), &l) {
		return &LateError{Limit: l.Limit, Last: last}
	}
	return err
}

func (r Runner) tell(s Step, e Event) {
	e.Time, e.Layer, e.Step, e.Node = r.Now(), s.Layer, s.Name, s.Node
	r.On(e)
}

func stepError(s Step, err error) error {
	name := s.Layer + ": " + s.Name
	if s.Node != "" {
		name = s.Layer + " " + s.Node + ": " + s.Name
	}
	return fmt.Errorf("%s: %w", name, err)
}

func summary(changes []Change) string {
	var parts []string
	for _, c := range changes {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", c.Verb, c.What, c.Why))
	}
	return strings.Join(parts, "; ")
}
