package bootstrap

import (
	"context"
	"net"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/cilium"
	"github.com/slipway/slipway/internal/bootstrap/flux"
	"github.com/slipway/slipway/internal/bootstrap/handover"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/nodes"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// between is the time between two looks at something that is awaited.
const between = 2 * time.Second

// pause lets time pass, and ends early with its context.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(between):
		return nil
	}
}

// inside are the steps within a cluster that has its servers, in order:
//
//   - the network first: nothing is Ready without it;
//   - then the nodes and names;
//   - then storage, which needs both;
//   - then Flux with its source, which changes nothing yet;
//   - then the gate, and the hand-over.
//
// After the hand-over they only watch.
func (s *Session) inside(p *material.Payload, r *material.Reader) ([]sequence.Step, error) {
	network, err := s.network(p)
	if err != nil {
		return nil, err
	}
	open := kube.Open(s.open)
	steps := cilium.Install(network, open)
	steps = append(steps, cilium.Ready(network, open, s.agent, pause)...)
	if pool := ciliumvalues.Objects(s.Cluster); len(pool) > 0 {
		steps = append(steps, cilium.Announce(kube.Manifest{Open: s.open, Objects: pool}))
	}
	steps = append(steps, nodes.Ready(s.names(), open, pause)...)
	storage, err := s.storage(p)
	if err != nil {
		return nil, err
	}
	steps = append(steps, storage...)
	git, err := s.flux(p, r)
	if err != nil {
		return nil, err
	}
	return append(steps, git...), nil
}

// names are the names of all nodes.
func (s *Session) names() []string {
	var out []string
	for _, n := range s.Cluster.Nodes {
		out = append(out, n.Name)
	}
	return out
}

// agent reaches the API of the Cilium agent on a node, a unix socket there.
func (s *Session) agent(ctx context.Context, node string) (net.Conn, error) {
	return s.node(node).Dial(ctx, "unix", cilium.SocketPath)
}

func (s *Session) network(p *material.Payload) (cilium.Network, error) {
	release := p.Network(s.Cluster)
	n := cilium.Network{
		Release: chart.Installation{Open: s.open, Release: release}, Values: release.Values,
		PodCIDR: s.Cluster.Network.PodCIDR.String(), Nodes: s.names(),
	}
	if !s.Cluster.ServesGateways() {
		return n, nil
	}
	definitions, err := kube.Decode("gateway-api.yaml", p.Gateway)
	if err != nil {
		return n, err
	}
	n.Gateway = &cilium.Gateway{
		Version: s.Cluster.Cilium.GatewayAPIVersion, Definitions: definitions,
		Manifest: kube.Manifest{Open: s.open, Objects: definitions},
	}
	return n, nil
}

func (s *Session) storage(p *material.Payload) ([]sequence.Step, error) {
	if !s.Cluster.Longhorn.Enabled {
		return nil, nil
	}
	marks, err := longhorn.Marks(s.Cluster)
	if err != nil {
		return nil, err
	}
	st := longhorn.Storage{Cluster: s.Cluster, Marks: kube.Marks{Open: s.open, Objects: marks}}
	if len(p.Longhorn) == 0 {
		definitions, err := kube.Decode("longhorn-crds.yaml", p.LonghornDefinitions)
		if err != nil {
			return nil, err
		}
		st.Definitions = kube.Manifest{Open: s.open, Objects: longhorn.Adoptable(definitions)}
		return longhorn.Install(st), nil
	}
	release := p.Storage(s.Cluster)
	st.Namespace = kube.Manifest{Open: s.open, Objects: longhorn.Space()}
	st.Release, st.Values = chart.Installation{Open: s.open, Release: release}, release.Values
	return append(longhorn.Install(st), longhorn.Ready(st, kube.Open(s.open), pause)...), nil
}

// flux are the steps from Flux's components to the hand-over; without a repository
// in the profile there are none.
func (s *Session) flux(p *material.Payload, r *material.Reader) ([]sequence.Step, error) {
	if s.Cluster.Flux.URL == "" {
		return nil, nil
	}
	components, err := kube.Decode("flux.yaml", p.Flux)
	if err != nil {
		return nil, err
	}
	f := flux.Flux{Version: s.Cluster.Flux.Version, Objects: components}
	manifest := func(objects ...map[string]any) flux.Wanted { return kube.Manifest{Open: s.open, Objects: objects} }
	f.Components = manifest(components...)
	private := fluxsync.Options{Private: r.Private()}
	synced := fluxsync.Objects(s.Cluster, private)
	private.Suspend = true
	f.Source = manifest(synced[0])
	f.Sync = manifest(synced[1])
	f.Secrets = manifest(r.Secrets()...)
	source := object.Of(synced[0])
	steps := append(flux.Install(f), flux.Ready(f, source, "", kube.Open(s.open), pause)...)
	return append(steps, handover.Steps(kube.Open(s.open), f.Sync, handover.Release{Name: "cilium", Namespace: "kube-system"},
		func(ctx context.Context) error { return s.gate(ctx, p, r) }, r.Revision, pause)...), nil
}

// repository are the checks of the repository that come before anything is changed:
// it can be reached, the age key opens it, and Flux would adopt from it what is going
// to be installed. Once Flux owns the cluster, all that is its business.
func (s *Session) repository(p *material.Payload, r *material.Reader) []sequence.Step {
	if s.Cluster.Flux.URL == "" {
		return nil
	}
	proven := flux.Proven(r.Prove)
	parity := sequence.Step{
		Layer: "handover", Name: "the repository agrees with the profile",
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			got, err := r.Read(ctx)
			if err != nil {
				return nil, err
			}
			verdicts, err := p.Judge(s.Cluster, got.Tree, nil)
			if err != nil {
				return nil, err
			}
			return nil, verdicts.Refusal()
		},
	}
	return []sequence.Step{s.before(proven), s.before(parity)}
}

// before is a step that is done when Flux owns the cluster.
func (s *Session) before(step sequence.Step) sequence.Step {
	observe := step.Observe
	step.Observe = func(ctx context.Context) ([]sequence.Change, error) {
		if owned, err := s.owned(ctx); owned || err != nil {
			return nil, err
		}
		return observe(ctx)
	}
	return step
}

// gate refuses the hand-over unless Flux would adopt what runs.
func (s *Session) gate(ctx context.Context, p *material.Payload, r *material.Reader) error {
	got, err := r.Read(ctx)
	if err != nil {
		return err
	}
	running, err := s.running(ctx, p)
	if err != nil {
		return err
	}
	verdicts, err := p.Judge(s.Cluster, got.Tree, running)
	if err != nil {
		return err
	}
	return verdicts.Refusal()
}
