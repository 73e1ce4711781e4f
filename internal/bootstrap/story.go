package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/handover"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/runlock"
	"github.com/slipway/slipway/internal/sequence"
)

// Plan looks at every step and tells what Up would do. It returns how many steps
// have something to do.
func (s *Session) Plan(ctx context.Context, p *material.Payload, on func(sequence.Event)) (pending int, err error) {
	steps, err := s.steps(ctx, p)
	if err != nil {
		return 0, err
	}
	return sequence.Runner{Now: s.Now, On: on}.Plan(ctx, steps)
}

// Up makes every step true, and returns how many did something. One Up runs at a
// time; the lock dies with its process.
func (s *Session) Up(ctx context.Context, p *material.Payload, on func(sequence.Event)) (did int, err error) {
	if err := s.Active(); err != nil {
		return 0, err
	}
	lock, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	steps, err := s.steps(ctx, p)
	if err != nil {
		return 0, err
	}
	return sequence.Runner{Now: s.Now, On: on}.Run(ctx, steps)
}

func (s *Session) lock() (*runlock.Lock, error) {
	if err := os.MkdirAll(s.State, 0o700); err != nil {
		return nil, err
	}
	return runlock.Take(filepath.Join(s.State, lockName), runlock.Self(s.Now()))
}

// steps are all steps, from machines that have booted to the hand-over. What Flux
// owns by now is only watched.
func (s *Session) steps(ctx context.Context, p *material.Payload) ([]sequence.Step, error) {
	r, err := s.Reader(s.Redactor)
	if err != nil {
		return nil, err
	}
	outside, err := s.outside(ctx, p, r)
	if err != nil {
		return nil, err
	}
	inside, err := s.inside(p, r)
	if err != nil {
		return nil, err
	}
	for i := range inside {
		inside[i].Watch = s.owned
		inside[i].Observe = s.seen(inside[i].Observe)
	}
	return append(outside, inside...), nil
}

// seen lets a step within the cluster look only when there is one.
func (s *Session) seen(observe func(context.Context) ([]sequence.Change, error)) func(context.Context) ([]sequence.Change, error) {
	return func(ctx context.Context) ([]sequence.Change, error) {
		if _, err := s.open(ctx); err != nil {
			return nil, err
		}
		return observe(ctx)
	}
}

// owned says whether Flux owns the cluster by now.
func (s *Session) owned(ctx context.Context) (bool, error) {
	k, err := s.open(ctx)
	if errors.Is(err, sequence.ErrUnseen) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if k.Ready(ctx) != nil {
		return false, nil // the steps say what is wrong with it
	}
	return handover.Done(ctx, k)
}
