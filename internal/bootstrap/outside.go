package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/k3s"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/bootstrap/preflight"
	"github.com/slipway/slipway/internal/secrets"
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
	servers := s.k3s(r)
	steps = append(steps, k3s.Steps(servers)...)
	return append(steps, k3s.Kubeconfig(servers, filepath.Join(s.State, kubeconfigName), s.Now)), nil
}

// k3s is what the steps of k3s need.
func (s *Session) k3s(r *reader) k3s.Options {
	return k3s.Options{
		Cluster: s.Cluster, Node: func(name string) k3s.Node { return s.hosts[name] }, Survey: s.survey,
		Recorded: s.recorded, Etcd: s.members, Pause: pause,
		Token: func() (string, error) {
			if r.secrets == nil {
				return "", errors.New("the secrets are not open")
			}
			return r.secrets.Need(secrets.Token)
		},
	}
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
