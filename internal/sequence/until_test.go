package sequence

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/slipway/slipway/internal/exit"
)

func TestUntil(t *testing.T) {
	looks := []struct {
		left []Change
		err  error
	}{
		{left: []Change{{Await, "n1", "is not ready"}, {Await, "n2", "is not ready"}}},
		{left: []Change{{Await, "n1", "is not ready"}, {Await, "n2", "is not ready"}}},
		{err: errors.New("connection refused")},
		{left: []Change{{Await, "n2", "is not ready"}}},
		{},
	}
	n := 0
	s := Until(Step{Layer: "test", Name: "ready"}, func(context.Context) ([]Change, error) {
		l := looks[min(n, len(looks)-1)]
		n++
		return l.left, l.err
	}, func(context.Context) error { return nil })

	var words []string
	r := runner(&[]string{})
	r.On = func(e Event) {
		if e.Kind == Waiting {
			words = append(words, e.Words)
		}
	}
	did, err := r.Run(t.Context(), []Step{s})
	if err != nil || did != 1 {
		t.Fatalf("did %d, %v", did, err)
	}
	want := []string{"n1: is not ready, and 1 more", "connection refused", "n2: is not ready"}
	if !slices.Equal(words, want) {
		t.Errorf("said %q, want %q", words, want)
	}
}

func TestUntilEnds(t *testing.T) {
	left := []Change{{Await, "n1", "is not ready"}}
	for _, c := range []struct {
		look, pause error
		want        string
	}{
		{look: exit.With(exit.Refused, errors.New("refused")), want: "refused"},
		{pause: errors.New("late"), want: "late"},
	} {
		s := Until(Step{}, func(context.Context) ([]Change, error) { return left, c.look },
			func(context.Context) error { return c.pause })
		if err := s.Do(t.Context(), func(string) {}); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
