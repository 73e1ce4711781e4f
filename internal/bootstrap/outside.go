package bootstrap

import (
	"context"
	"path/filepath"

	"github.com/slipway/slipway/internal/bootstrap/adopt"
	"github.com/slipway/slipway/internal/bootstrap/disks"
	"github.com/slipway/slipway/internal/bootstrap/k3s"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/preflight"
	"github.com/slipway/slipway/internal/bootstrap/vip"
	"github.com/slipway/slipway/internal/sequence"
)

// outside are the steps from booted nodes to a cluster that has its servers:
//
//   - everything that speaks against it, before anything is changed;
//   - the data disks, which must be mounted before k3s starts;
//   - k3s on the servers, one by one, and then on the agents;
//   - the API's virtual address, which follows servers that are there;
//   - the kubeconfig, and the record of the cluster in the ledger.
func (s *Session) outside(_ context.Context, p *material.Payload, r *material.Reader) ([]sequence.Step, error) {
	steps := []sequence.Step{preflight.Step(preflight.Options{
		Cluster: s.Cluster, Survey: s.survey, Recorded: s.recorded, Etcd: s.members, WithoutTimeServer: s.noTime,
	})}
	steps = append(steps, s.repository(p, r)...)
	steps = append(steps, disks.Steps(s.Cluster, func(name string) disks.Node { return s.node(name) }, s.survey)...)
	servers := s.k3s(r)
	steps = append(steps, k3s.Steps(servers)...)
	steps = append(steps, vip.Steps(vip.Options{
		Cluster: s.Cluster, Node: func(name string) vip.Node { return s.node(name) }, Survey: s.survey, Pause: pause,
	})...)
	return append(steps, k3s.Kubeconfig(servers, filepath.Join(s.State, kubeconfigName), s.Now), adopt.Step(s.sources(), known{s})), nil
}

// k3s is what the steps of k3s need.
func (s *Session) k3s(r *material.Reader) k3s.Options {
	return k3s.Options{
		Cluster: s.Cluster, Node: func(name string) k3s.Node { return s.node(name) }, Survey: s.survey,
		Recorded: s.recorded, Etcd: s.members, Pause: pause,
		Token: r.Token,
	}
}
