package adopt

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/book"
	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/controlplane"
)

type m = map[string]any

// living is a cluster with a node, two releases and no Flux.
func living(t *testing.T) (*controlplane.Plane, *kube.Client) {
	t.Helper()
	p := controlplane.Start(t, controlplane.Options{Controllers: true})
	c, err := kube.New(p.KubeconfigBytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	name := p.Members()[0].Name
	helm := func(namespace, release, version, status string) m {
		return m{"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": m{
			"name": "sh.helm.release.v1." + release + ".v" + version, "namespace": namespace,
			"labels": m{"owner": "helm", "name": release, "version": version, "status": status},
		}}
	}
	if err := c.Apply(t.Context(), []map[string]any{
		{"apiVersion": "v1", "kind": "Node", "metadata": m{"name": "n1", "annotations": m{memberName: name, memberAddress: "127.0.0.1"}}},
		helm("kube-system", "cilium", "9", "superseded"), helm("kube-system", "cilium", "10", "deployed"), helm("default", "web", "1", "failed"),
		{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": "plain", "namespace": "default"}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	// The controllers publish the CA a moment after they have started.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := c.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "kube-root-ca.crt"})
		if err == nil {
			return p, c
		}
		if !errors.Is(err, object.ErrNotFound) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func sources(c *kube.Client) Sources {
	return Sources{Environment: "lab", Name: "harbor", Reader: c, Now: time.Now}
}

func withSSH(t *testing.T, p *controlplane.Plane, s Sources) Sources {
	t.Helper()
	e := etcd.New(etcd.Config{Endpoints: p.EtcdEndpoints(), TLS: p.EtcdTLS()})
	t.Cleanup(func() { e.Close() })
	s.Etcd = e
	s.Nodes = func(context.Context) []facts.Seen {
		return []facts.Seen{
			{Node: "n1", Facts: facts.Facts{MachineID: "m1", InstanceID: "lab-n1-aa", HostKeys: []string{"ssh-rsa B", "ssh-ed25519 A"}, Initiator: "iqn.n1", Image: facts.Image{RootHash: "r1"}}},
			{Node: "n9", Facts: facts.Facts{MachineID: "m9"}}, {Node: "n2", Err: errors.New("no route to host")},
		}
	}
	return s
}

func openBook(t *testing.T) *book.Book {
	t.Helper()
	b, err := book.Open(t.Context(), book.Options{Environment: "lab", Ledger: ledger.Options{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func runner(lines *[]string) sequence.Runner {
	return sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		for _, c := range e.Changes {
			*lines = append(*lines, string(c.Verb)+" "+c.What+": "+c.Why)
		}
	}}
}

func planned(t *testing.T, s Sources, b *book.Book) ([]string, error) {
	t.Helper()
	var lines []string
	_, err := runner(&lines).Plan(t.Context(), []sequence.Step{Step(s, b)})
	return lines, err
}

func adopted(t *testing.T, s Sources, b *book.Book) {
	t.Helper()
	var lines []string
	if _, err := runner(&lines).Run(t.Context(), []sequence.Step{Step(s, b)}); err != nil {
		t.Fatal(err)
	}
}

// A living cluster and an empty ledger: the cluster is taken as it is, nothing in it
// changes, and afterwards there is nothing to do.
func TestLostLedger(t *testing.T) {
	p, c := living(t)
	before := versions(t, c)
	b := openBook(t)
	lines, err := planned(t, sources(c), b)
	if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "create record of cluster harbor in the ledger: a cluster lives and the ledger knows none: it is taken as it is (CA ") {
		t.Errorf("%q, %v", lines, err)
	}
	adopted(t, sources(c), b)
	if lines, err := planned(t, sources(c), b); err != nil || len(lines) > 0 {
		t.Errorf("after it was adopted: %q, %v", lines, err)
	}
	got, err := b.Known(t.Context(), "lab")
	if err != nil || len(got.Releases) != 2 || got.Releases[0] != (identity.Release{Namespace: "default", Name: "web", Revision: 1, Status: "failed"}) || got.Releases[1].Revision != 10 ||
		got.UID == "" || got.CA.IsZero() || len(got.Members) != 1 || got.Members[0].Name != p.Members()[0].Name || got.Nodes[0].UID == "" || got.Flux != nil {
		t.Errorf("%+v, %v", got, err)
	}

	full := withSSH(t, p, sources(c))
	if lines, err := planned(t, full, b); err != nil || len(lines) != 2 { // etcd's ID, what n1 says of itself
		t.Errorf("with SSH: %q, %v", lines, err)
	}
	adopted(t, full, b)
	got, err = b.Known(t.Context(), "lab")
	if err != nil || got.Etcd == "" || got.Members[0].ID == 0 || got.Nodes[0].InstanceID != "lab-n1-aa" || !slices.Equal(got.Nodes[0].HostKeys, []string{"ssh-ed25519 A", "ssh-rsa B"}) || len(got.Nodes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, s := range map[string]Sources{"with SSH": full, "without": sources(c)} {
		if lines, err := planned(t, s, b); err != nil || len(lines) > 0 {
			t.Errorf("again, %s: %q, %v", name, lines, err)
		}
	}
	if after := versions(t, c); !maps.Equal(before, after) {
		t.Error("it has changed the cluster")
	}
	otherCluster(t, c, b)
}

// otherCluster: the ledger of one cluster is of no use for another.
func otherCluster(t *testing.T, c *kube.Client, mine *book.Book) {
	t.Helper()
	known, err := mine.Known(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	foreign := *known
	foreign.CA, foreign.UID = digest.Of([]byte("another")), "another" // the same in everything else
	b := openBook(t)
	if err := b.PutCluster(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	lines, err := planned(t, sources(c), b)
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "is not the one that the ledger knows") || !strings.Contains(diag.HintOf(err), "--forget") || len(lines) > 0 {
		t.Errorf("%q, %v", lines, err)
	}
	var none []string
	if _, err := runner(&none).Run(t.Context(), []sequence.Step{Step(sources(c), b)}); exit.Of(err) != exit.Refused {
		t.Errorf("%v", err)
	}
	if got, err := b.Known(t.Context(), "lab"); err != nil || got.UID != "another" {
		t.Errorf("%+v, %v: the record was changed", got, err)
	}
}

// versions are the objects that could be changed.
func versions(t *testing.T, c *kube.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{"Node", "Secret", "ConfigMap", "Namespace"} {
		found, err := c.Metadata(t.Context(), "v1", kind, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			out[object.Of(o).String()] = object.Text(o, "metadata", "resourceVersion")
		}
	}
	return out
}

func TestPublic(t *testing.T) {
	for in, want := range map[string]string{
		"ssh://git@host/repo": "ssh://git@host/repo", "https://user:token@host/repo": "https://host/repo", "https://token@host/repo": "https://host/repo",
		"ssh://git:word@host/repo": "ssh://host/repo", "git@host:repo": "git@host:repo", "": "",
	} {
		if got := public(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
