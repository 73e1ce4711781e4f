package sequence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is what steps make true, in the order in which they did.
type world struct {
	truth []string
	looks int
}

func (w *world) step(name string, more ...func(*Step)) Step {
	s := Of(Step{Layer: "test", Name: name},
		func(context.Context) (bool, error) {
			w.looks++
			return slices.Contains(w.truth, name), nil
		},
		func(there bool) ([]Change, error) {
			if there {
				return nil, nil
			}
			return []Change{{Create, name, "is missing"}}, nil
		},
		func(_ context.Context, _ bool, tell Tell) error {
			tell("for " + name)
			w.truth = append(w.truth, name)
			return nil
		})
	for _, change := range more {
		change(&s)
	}
	return s
}

func runner(events *[]string) Runner {
	var clock time.Time
	return Runner{
		Now: func() time.Time { clock = clock.Add(time.Second); return clock },
		On:  func(e Event) { *events = append(*events, string(e.Kind)+" "+e.Step) },
	}
}

func TestRun(t *testing.T) {
	var events []string
	w := &world{truth: []string{"b"}}
	did, err := runner(&events).Run(t.Context(), []Step{w.step("a"), w.step("b"), w.step("c")})
	if err != nil || did != 2 {
		t.Fatalf("did %d, %v", did, err)
	}
	want := []string{"started a", "waiting a", "done a", "skipped b", "started c", "waiting c", "done c"}
	if !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	events = nil
	if did, err = runner(&events).Run(t.Context(), []Step{w.step("a"), w.step("b"), w.step("c")}); did != 0 || err != nil {
		t.Errorf("the second run did %d, %v", did, err)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	var events []string
	w := &world{}
	unseen := func(s *Step) {
		s.Observe = func(context.Context) ([]Change, error) { return nil, ErrUnseen }
		s.Blind = []Change{{Create, "c", "comes after b"}}
	}
	pending, err := runner(&events).Plan(t.Context(), []Step{w.step("a"), w.step("c", unseen)})
	if err != nil || pending != 2 || len(w.truth) != 0 {
		t.Errorf("pending %d, %v, made %q", pending, err, w.truth)
	}
	if want := []string{"planned a", "planned c"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

func TestRunStops(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Step)
	}{
		{"refusal", "no", func(s *Step) {
			s.Observe = func(context.Context) ([]Change, error) { return nil, errors.New("no") }
		}},
		{"unseen in a run", "cannot be seen yet", func(s *Step) {
			s.Observe = func(context.Context) ([]Change, error) { return nil, ErrUnseen }
		}},
		{"says done and is not", "done, and still: create b (is missing)", func(s *Step) {
			s.Do = func(context.Context, Tell) error { return nil }
		}},
		{"only checks", "create b (is missing)", func(s *Step) { s.Do = nil }},
		{"late", "not done within 1ms; it was waiting: for the moon", func(s *Step) {
			s.Deadline = time.Millisecond
			s.Do = func(ctx context.Context, tell Tell) error {
				tell("for the moon")
				<-ctx.Done()
				return ctx.Err()
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []string
			w := &world{}
			_, err := runner(&events).Run(t.Context(), []Step{w.step("a"), w.step("b", c.change), w.step("c")})
			if err == nil || !strings.HasPrefix(err.Error(), "test: b: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one of b with %q", err, c.want)
			}
			if !slices.Equal(w.truth, []string{"a"}) {
				t.Errorf("made %q, want a alone", w.truth)
			}
			if last := events[len(events)-1]; last != "failed b" {
				t.Errorf("last event %q", last)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	var events []string
	w := &world{truth: []string{"b"}}
	watch := func(s *Step) { s.Watch = func(context.Context) (bool, error) { return true, nil } }
	steps := []Step{w.step("a", watch), w.step("b", watch)}
	if pending, err := runner(&events).Plan(t.Context(), steps); pending != 0 || err != nil {
		t.Errorf("a plan has %d to do, %v", pending, err)
	}
	if did, err := runner(&events).Run(t.Context(), steps); did != 0 || err != nil || len(w.truth) != 1 {
		t.Errorf("a run did %d, %v", did, err)
	}
	if want := []string{"drifted a", "skipped b", "drifted a", "skipped b"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// A run that is killed between any two steps is finished by the next.
func TestRunResumes(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for kill := range names {
		w := &world{}
		ctx, cancel := context.WithCancelCause(t.Context())
		t.Cleanup(func() { cancel(nil) })
		var steps []Step
		for i, name := range names {
			steps = append(steps, w.step(name, func(s *Step) {
				do := s.Do
				s.Do = func(ctx context.Context, tell Tell) error {
					err := do(ctx, tell)
					if i == kill {
						cancel(errors.New("killed"))
					}
					return err
				}
			}))
		}
		var events []string
		runner(&events).Run(ctx, steps)
		if did, err := runner(&events).Run(t.Context(), steps); err != nil || did != len(names)-1-kill {
			t.Errorf("killed after %s: the next run did %d, %v", names[kill], did, err)
		}
		if !slices.Equal(w.truth, names) {
			t.Errorf("killed after %s: made %q", names[kill], w.truth)
		}
	}
}
