package adopt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/payload/object"
)

// See looks at a cluster and changes nothing.
func See(ctx context.Context, s Sources) (identity.Cluster, error) {
	c := identity.Cluster{Environment: s.Environment, Name: s.Name, Seen: s.Now().UTC()}
	nodes, err := s.Reader.List(ctx, "v1", "Node", "", "")
	if err != nil {
		return c, err
	}
	c.Nodes = s.identities(ctx, nodes)
	for _, look := range []func(context.Context, *identity.Cluster) error{s.birth, s.releases, s.flux} {
		if err := look(ctx, &c); err != nil {
			return c, err
		}
	}
	return c, s.members(ctx, &c, nodes)
}

// birth is what the cluster got when it was made. The CA is the one that the cluster
// publishes in every namespace for its pods, the same by which its servers are known.
func (s Sources) birth(ctx context.Context, c *identity.Cluster) error {
	ns, err := s.Reader.Get(ctx, object.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	if err != nil {
		return err
	}
	c.UID = object.Text(ns, "metadata", "uid")
	published := object.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "kube-root-ca.crt"}
	o, err := s.Reader.Get(ctx, published)
	if err != nil {
		return err
	}
	if c.CA, err = identity.CAOf([]byte(object.Text(o, "data", "ca.crt"))); err != nil {
		return fmt.Errorf("%s: %w", published, err)
	}
	return nil
}

// identities are the nodes as the API has them, and as they themselves say when they
// can be asked.
func (s Sources) identities(ctx context.Context, nodes []map[string]any) []identity.Node {
	var out []identity.Node
	for _, n := range nodes {
		one := identity.Node{
			Name: object.Of(n).Name, UID: object.Text(n, "metadata", "uid"),
			MachineID: object.Text(n, "status", "nodeInfo", "machineID"), K3s: object.Text(n, "status", "nodeInfo", "kubeletVersion"),
		}
		for _, a := range object.Maps(n, "status", "addresses") {
			if object.Text(a, "type") == "InternalIP" {
				one.Addresses = append(one.Addresses, object.Text(a, "address"))
			}
		}
		out = append(out, one)
	}
	if s.Nodes == nil {
		return out
	}
	for _, said := range s.Nodes(ctx) {
		i := slices.IndexFunc(out, func(n identity.Node) bool { return n.Name == said.Node })
		if i < 0 || said.Err != nil {
			continue
		}
		f := said.Facts
		out[i].InstanceID, out[i].Initiator, out[i].RootHash = f.InstanceID, f.Initiator, f.Image.RootHash
		out[i].HostKeys = slices.Sorted(slices.Values(f.HostKeys))
		if f.MachineID != "" {
			out[i].MachineID = f.MachineID
		}
	}
	return out
}

// Annotations by which k3s names a node's member of etcd.
const (
	memberName    = "etcd.k3s.cattle.io/node-name"
	memberAddress = "etcd.k3s.cattle.io/node-address"
)

func (s Sources) members(ctx context.Context, c *identity.Cluster, nodes []map[string]any) error {
	if s.Etcd == nil {
		for _, n := range nodes {
			if name := object.Text(n, "metadata", "annotations", memberName); name != "" {
				c.Members = append(c.Members, member.Member{Name: name, PeerURLs: []string{"https://" + object.Text(n, "metadata", "annotations", memberAddress) + ":2380"}})
			}
		}
	} else {
		state, err := s.Etcd.State(ctx)
		if err != nil {
			return err
		}
		c.Etcd, c.Members = state.Cluster.String(), state.Members
	}
	slices.SortFunc(c.Members, func(a, b member.Member) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// releases are read from the labels of the Secrets in which Helm keeps them.
func (s Sources) releases(ctx context.Context, c *identity.Cluster) error {
	secrets, err := s.Reader.Metadata(ctx, "v1", "Secret", "")
	if err != nil {
		return err
	}
	newest := map[string]identity.Release{}
	for _, o := range secrets {
		label := func(name string) string { return object.Text(o, "metadata", "labels", name) }
		revision, err := strconv.Atoi(label("version"))
		if label("owner") != "helm" || err != nil {
			continue
		}
		r := identity.Release{Namespace: object.Of(o).Namespace, Name: label("name"), Revision: revision, Status: label("status")}
		if key := r.Namespace + "/" + r.Name; newest[key].Revision < revision {
			newest[key] = r
		}
	}
	for _, r := range newest {
		c.Releases = append(c.Releases, r)
	}
	slices.SortFunc(c.Releases, func(a, b identity.Release) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return nil
}

func (s Sources) flux(ctx context.Context, c *identity.Cluster) error {
	sync, err := s.Reader.Get(ctx, object.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"})
	if errors.Is(err, object.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	source, err := s.Reader.Get(ctx, object.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"})
	if err != nil && !errors.Is(err, object.ErrNotFound) {
		return err
	}
	c.Flux = &identity.Flux{URL: public(object.Text(source, "spec", "url")), Revision: object.Text(sync, "status", "lastAppliedRevision")}
	return nil
}

// public takes a password out of a URL: the ledger holds no secret.
func public(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	if _, secret := u.User.Password(); secret || u.Scheme != "ssh" {
		u.User = nil
	}
	return u.String()
}
