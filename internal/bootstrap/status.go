package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/handover"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// Status is what can be seen of a cluster from its API.
type Status struct {
	Cluster     string          `json:"cluster"`
	Environment string          `json:"environment"`
	Server      string          `json:"server"` // URL of the API; empty when there is no kubeconfig
	API         string          `json:"api"`    // version, or why it does not answer
	Nodes       []NodeStatus    `json:"nodes"`
	Releases    []ReleaseStatus `json:"releases"`
	Flux        FluxStatus      `json:"flux"`
	Volumes     []VolumeStatus  `json:"volumes"` // of Longhorn, those that are not healthy
}

// NodeStatus is a node of the profile.
type NodeStatus struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Why     string `json:"why,omitempty"` // it is not ready
	Version string `json:"version,omitempty"`
	Address string `json:"address,omitempty"`
	Cordon  bool   `json:"cordoned,omitempty"`
}

// ReleaseStatus is a Helm release.
type ReleaseStatus struct {
	Name     string `json:"name"`
	Chart    string `json:"chart"`
	Revision int    `json:"revision"`
	Status   string `json:"status"`
}

// FluxStatus says how far the hand-over is.
type FluxStatus struct {
	Owns     bool     `json:"owns"`
	Revision string   `json:"revision,omitempty"` // that was applied
	Waiting  []string `json:"waiting,omitempty"`  // Kustomizations and HelmReleases that are not ready
}

// VolumeStatus is a volume of Longhorn.
type VolumeStatus struct {
	Name       string `json:"name"`
	Robustness string `json:"robustness"`
}

// Status reads the status. A part that cannot be read is left out; only an API that
// does not answer at all is told in place of everything.
func (s *Session) Status(ctx context.Context) (Status, error) {
	out := Status{Cluster: s.Cluster.Name, Environment: s.Cluster.Environment}
	k, err := s.open(ctx)
	if errors.Is(err, sequence.ErrUnseen) {
		out.API = "there is no cluster yet, or its kubeconfig is not here (bootstrap adopt)"
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Server = k.Server()
	if out.API, err = k.Version(ctx); err != nil {
		out.API = "does not answer: " + err.Error()
		return out, nil
	}
	for _, part := range []func(context.Context, *kube.Client, *Status) error{s.nodeStatus, s.releaseStatus, s.fluxStatus, s.volumeStatus} {
		if err := part(ctx, k, &out); err != nil && !errors.Is(err, object.ErrNotFound) {
			return out, err
		}
	}
	return out, nil
}

func (s *Session) nodeStatus(ctx context.Context, k *kube.Client, out *Status) error {
	found, err := k.List(ctx, "v1", "Node", "", "")
	if err != nil {
		return err
	}
	for _, n := range s.Cluster.Nodes {
		st := NodeStatus{Name: n.Name, Why: "has not registered"}
		at := slices.IndexFunc(found, func(o map[string]any) bool { return object.Of(o).Name == n.Name })
		if at >= 0 {
			st = nodeStatus(found[at])
		}
		out.Nodes = append(out.Nodes, st)
	}
	return nil
}

func nodeStatus(o map[string]any) NodeStatus {
	ready := object.ConditionOf(o, "Ready")
	st := NodeStatus{
		Name: object.Of(o).Name, Ready: ready.True(), Cordon: object.At(o, "spec", "unschedulable") == true,
		Version: object.Text(o, "status", "nodeInfo", "kubeletVersion"),
	}
	if !st.Ready {
		st.Why = ready.String()
	}
	for _, a := range object.Maps(o, "status", "addresses") {
		if object.Text(a, "type") == "InternalIP" {
			st.Address = object.Text(a, "address")
		}
	}
	return st
}

func (s *Session) releaseStatus(ctx context.Context, k *kube.Client, out *Status) error {
	for _, r := range []struct{ name, namespace string }{{"cilium", "kube-system"}, {"longhorn", "longhorn-system"}} {
		is, err := (chart.Client{Kube: k}).Status(ctx, r.name, r.namespace)
		if err != nil {
			return err
		}
		if is.Found {
			out.Releases = append(out.Releases, ReleaseStatus{r.name, is.Chart, is.Revision, is.Status})
		}
	}
	return nil
}

func (s *Session) fluxStatus(ctx context.Context, k *kube.Client, out *Status) error {
	var err error
	if out.Flux.Owns, err = handover.Done(ctx, k); err != nil {
		return err
	}
	for _, kind := range []struct{ api, kind string }{{"kustomize.toolkit.fluxcd.io/v1", "Kustomization"}, {"helm.toolkit.fluxcd.io/v2", "HelmRelease"}} {
		list, err := k.List(ctx, kind.api, kind.kind, "", "")
		if err != nil {
			return err
		}
		for _, o := range list {
			if object.Of(o).Name == fluxsync.Name && kind.kind == "Kustomization" {
				out.Flux.Revision = object.Text(o, "status", "lastAppliedRevision")
			}
			if c := object.ConditionOf(o, "Ready"); !c.True() {
				out.Flux.Waiting = append(out.Flux.Waiting, fmt.Sprintf("%s: %s", object.Of(o), c))
			}
		}
	}
	return nil
}

func (s *Session) volumeStatus(ctx context.Context, k *kube.Client, out *Status) error {
	list, err := k.List(ctx, "longhorn.io/v1beta2", "Volume", "longhorn-system", "")
	if err != nil {
		return err
	}
	for _, o := range list {
		if r := object.Text(o, "status", "robustness"); r != "healthy" {
			out.Volumes = append(out.Volumes, VolumeStatus{object.Of(o).Name, r})
		}
	}
	return nil
}

// Healthy says whether nothing in the status asks for attention.
func (s Status) Healthy() bool {
	return s.Server != "" && len(s.Nodes) > 0 && !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return !n.Ready || n.Cordon }) &&
		len(s.Volumes) == 0 && len(s.Flux.Waiting) == 0 && !strings.HasPrefix(s.API, "does not")
}
