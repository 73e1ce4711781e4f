package k3s

import (
	"context"

	"github.com/slipway/slipway/internal/sequence"
)

// joined makes an agent a node of the cluster.
func joined(o Options, name string) sequence.Step {
	step := sequence.Step{Layer: layer, Name: "has joined as an agent", Node: name, Deadline: agentLimit}
	return sequence.Of(step,
		func(ctx context.Context) (standing, error) { return o.stand(ctx, name) },
		func(s standing) ([]sequence.Change, error) {
			changes := s.unequal.changes
			switch {
			case !s.k.Running():
				changes = append(changes, create("agent on "+name, "it joins through %s", s.decision.Through(name)))
			case !s.k.Joined || s.k.Starting():
				changes = append(changes, await(name, "it has not joined yet"))
			}
			return changes, nil
		},
		func(ctx context.Context, s standing, tell sequence.Tell) error {
			defer o.changed(name)
			if err := o.write(ctx, name, s.unequal.files, tell); err != nil {
				return err
			}
			run, err := o.start(ctx, s, name, tell)
			if err != nil {
				return err
			}
			return o.await(ctx, name, run, tell, func(context.Context) (bool, string) { return true, "" })
		})
}
