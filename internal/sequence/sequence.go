// Package sequence is a use case as an ordered list of steps. A step looks before
// it acts and again afterwards; one that is already true is skipped. So a run can be
// killed anywhere and the next one goes on from what it finds, not from what was
// written down.
package sequence

import (
	"context"
	"errors"
	"time"
)

// Verb says what becomes of a thing.
type Verb string

// The verbs of a change. Destroy is for whatever cannot be had back.
const (
	Create  Verb = "create"
	Alter   Verb = "change"
	Destroy Verb = "destroy"
	Await   Verb = "wait"
)

// Change is one thing that a step would do, and why.
type Change struct {
	Verb Verb   `json:"verb"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// ErrUnseen says that a step cannot look yet, because what it looks at is made by a
// step before it. A plan then shows the step's Blind changes; a run fails.
var ErrUnseen = errors.New("cannot be seen yet")

// Tell reports what a step is doing or waiting for, in a few words.
type Tell func(words string)

// Step is one step of a sequence.
type Step struct {
	Layer    string        // what it belongs to: preflight, k3s, cilium, ...
	Name     string        // what it makes true, such as "k3s is a voter"
	Node     string        // the node it is about; empty for the cluster
	Deadline time.Duration // of Do; zero means that Do bounds itself

	// Observe looks, without changing anything, and returns what is missing; nothing
	// means that the step is done. An error ends the sequence before anything is done.
	Observe func(context.Context) ([]Change, error)
	// Do makes it true. A step without Do only checks.
	Do func(context.Context, Tell) error
	// Watch says whether somebody else owns what the step is about by now; it then only
	// reports what it would change. It is asked when there is something.
	Watch func(context.Context) (bool, error)
	// Blind is what the step will do when all before it was done by the same run.
	Blind []Change
}

// watched asks whether a step only watches.
func (s Step) watched(ctx context.Context) (bool, error) {
	if s.Watch == nil {
		return false, nil
	}
	return s.Watch(ctx)
}

// Of makes a step of three parts that share what was observed: observe looks, plan
// decides and is pure, do acts on what was seen last.
func Of[S any](step Step, observe func(context.Context) (S, error), plan func(S) ([]Change, error), do func(context.Context, S, Tell) error) Step {
	var seen S
	step.Observe = func(ctx context.Context) ([]Change, error) {
		s, err := observe(ctx)
		if err != nil {
			return nil, err
		}
		seen = s
		return plan(s)
	}
	if do != nil {
		step.Do = func(ctx context.Context, tell Tell) error { return do(ctx, seen, tell) }
	}
	return step
}
