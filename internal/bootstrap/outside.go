package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/bootstrap/preflight"
	"github.com/slipway/slipway/internal/sequence"
)

// outside are the steps from booted nodes to a cluster that has its servers:
//
//   - everything that speaks against it, before anything is changed;
//   - the data disks, which must be mounted before k3s starts;
//   - k3s on the servers, one by one, and then on the agents;
//   - the API's virtual address, which follows servers that are there.
func (s *Session) outside(_ context.Context, p *Payload, r *reader) ([]sequence.Step, error) {
	steps := []sequence.Step{preflight.Step(preflight.Options{
		Cluster: s.Cluster, Survey: s.survey, Recorded: s.recorded, Etcd: s.members, WithoutTimeServer: s.login.WithoutTimeServer,
	})}
	steps = append(steps, s.repository(p, r)...)
	steps = append(steps, longhorn.Mounted(s.Cluster, disks{s})...)
	return steps, nil
}

// disks speaks with nodes about their data disks.
type disks struct{ s *Session }

func (d disks) Data(ctx context.Context, node string) ([]facts.Mount, error) {
	seen := d.s.survey.Ask(ctx, node)[0]
	return seen.Facts.Data, seen.Err
}

func (d disks) Take(ctx context.Context, node string, w facts.Wanted) error {
	order, err := json.Marshal(w)
	if err != nil {
		return err
	}
	defer d.s.survey.Forget(node)
	if _, err := d.s.hosts[node].Run(ctx, "slipway-node data make -o json", order); err != nil {
		return fmt.Errorf("%s cannot take its data disks: %w", node, err)
	}
	return nil
}
