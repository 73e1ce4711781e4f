package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/cilium"
	"github.com/slipway/slipway/internal/bootstrap/flux"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/ciliumvalues"
	"github.com/slipway/slipway/internal/payload/fluxsync"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

// rig is one cluster and what is wanted in it.
type rig struct {
	parts
	client *kube.Client
	values map[string]any // for Cilium, beyond the profile's
}

func newRig(t testing.TB, p parts, kubeconfig []byte) *rig {
	t.Helper()
	c, err := kube.New(kubeconfig, nil)
	must(t, err)
	return &rig{parts: p, client: c}
}

func (r *rig) open(context.Context) (*kube.Client, error) { return r.client, nil }

func (r *rig) manifest(objects []map[string]any) kube.Manifest {
	return kube.Manifest{Open: r.open, Objects: objects}
}

// release is Cilium's, with further values.
func (r *rig) release(more map[string]any) chart.Release {
	values := ciliumvalues.Values(r.cluster)
	maps.Copy(values, more)
	return chart.Release{Name: ciliumvalues.Release, Namespace: ciliumvalues.Namespace, Archive: r.chart, Digest: r.digest(), Values: values}
}

func (r *rig) network() cilium.Network {
	release := r.release(r.values)
	n := cilium.Network{
		Gateway: &cilium.Gateway{Version: r.cluster.Cilium.GatewayAPIVersion, Definitions: r.gateway, Manifest: r.manifest(r.gateway)},
		Release: chart.Installation{Open: r.open, Release: release}, Values: release.Values, PodCIDR: r.cluster.Network.PodCIDR.String(),
	}
	for _, node := range r.cluster.Nodes {
		n.Nodes = append(n.Nodes, node.Name)
	}
	return n
}

func (r *rig) storage(t testing.TB) longhorn.Storage {
	t.Helper()
	marks, err := longhorn.Marks(r.cluster)
	must(t, err)
	return longhorn.Storage{Cluster: r.cluster, Marks: kube.Marks{Open: r.open, Objects: marks}, Definitions: r.manifest(r.longhorn)}
}

func (r *rig) gitops() flux.Flux {
	o := fluxsync.Options{Private: true}
	objects := fluxsync.Objects(r.cluster, o)
	return flux.Flux{
		Version: r.cluster.Flux.Version, Objects: r.flux, Components: r.manifest(r.flux),
		Secrets: r.manifest([]map[string]any{
			fluxsync.Secret(fluxsync.AgeSecret, map[string][]byte{fluxsync.AgeKey: []byte("AGE-SECRET-KEY-FIXTURE\n")}),
			fluxsync.Secret(fluxsync.Name, map[string][]byte{fluxsync.KeyUsername: []byte("git"), fluxsync.KeyPassword: []byte("canary")}),
		}),
		Source: r.manifest(objects[:1]), Sync: r.manifest(objects[1:]),
	}
}

// steps are all steps that install something, in order.
func (r *rig) steps(t testing.TB) []sequence.Step {
	t.Helper()
	steps := cilium.Install(r.network(), kube.Open(r.open))
	steps = append(steps, longhorn.Install(r.storage(t))...)
	steps = append(steps, flux.Install(r.gitops())...)
	return append(steps, flux.Sync(r.gitops()))
}

// owned is how many objects the steps make, and mark.
func (r *rig) owned(t testing.TB) int {
	t.Helper()
	status, err := chart.Client{Kube: r.client}.Status(t.Context(), ciliumvalues.Release, ciliumvalues.Namespace)
	must(t, err)
	return len(status.Objects) + len(r.gateway) + len(r.longhorn) + len(r.flux) + len(r.cluster.Nodes) + 4
}

// run runs steps and says what happened.
func (r *rig) run(t testing.TB, steps []sequence.Step) (did int, events []sequence.Event, err error) {
	t.Helper()
	runner := sequence.Runner{Now: time.Now, On: func(e sequence.Event) { events = append(events, e) }}
	did, err = runner.Run(t.Context(), steps)
	return did, events, err
}

func (r *rig) mustRun(t testing.TB, steps []sequence.Step) (did int, events []sequence.Event) {
	t.Helper()
	did, events, err := r.run(t, steps)
	must(t, err)
	return did, events
}

// plan plans steps and returns the changes as lines.
func (r *rig) plan(t testing.TB, steps []sequence.Step) (lines []string) {
	t.Helper()
	runner := sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		for _, c := range e.Changes {
			lines = append(lines, fmt.Sprintf("%s: %s %s: %s", e.Layer, c.Verb, c.What, c.Why))
		}
	}}
	_, err := runner.Plan(t.Context(), steps)
	must(t, err)
	return lines
}

// standInNodes registers the profile's nodes, as their kubelets would.
func (r *rig) standInNodes(t testing.TB) {
	t.Helper()
	for _, n := range r.cluster.Nodes {
		r.standIn(t, node(n))
	}
}

func node(n cluster.Node) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": n.Name, "labels": map[string]any{"kubernetes.io/hostname": n.Name}}}
}

// standIn makes an object that somebody else makes in a real cluster.
func (r *rig) standIn(t testing.TB, o map[string]any) {
	t.Helper()
	ref := object.Of(o)
	r.send(t, ref, "", o)
}

// standInStatus writes the status that a controller would write.
func (r *rig) standInStatus(t testing.TB, ref object.Ref, status map[string]any) {
	t.Helper()
	r.send(t, ref, "/status", map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace}, "status": status})
}

// send applies an object, or a part of it, under a manager of its own.
func (r *rig) send(t testing.TB, ref object.Ref, sub string, body map[string]any) {
	t.Helper()
	data, err := json.Marshal(body)
	must(t, err)
	_, mapper := r.client.Kinds()
	group, version := ref.Group(), ref.APIVersion[strings.LastIndex(ref.APIVersion, "/")+1:]
	m, err := mapper.RESTMapping(groupKind(group, ref.Kind), version)
	must(t, err)
	path := "/apis/" + ref.APIVersion
	if group == "" {
		path = "/api/" + version
	}
	if ref.Namespace != "" {
		path += "/namespaces/" + ref.Namespace
	}
	path += "/" + m.Resource.Resource + "/" + ref.Name + sub
	disco, _ := r.client.Kinds()
	err = disco.RESTClient().Patch(applyPatch).AbsPath(path).Param("fieldManager", "stand-in").Param("force", "true").Body(data).Do(t.Context()).Error()
	if err != nil {
		t.Fatalf("stand-in for %s: %v", ref, err)
	}
}

// versions are the resourceVersions of every object of the cluster. Left out is what
// changes without anybody doing anything.
func (r *rig) versions(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	r.each(t, r.client.Metadata, func(name string, o map[string]any) {
		out[name] = object.Text(o, "metadata", "resourceVersion")
	})
	return out
}

// content is every object of the cluster without what is new in each cluster.
func (r *rig) content(t testing.TB) map[string]string {
	t.Helper()
	list := func(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error) {
		return r.client.List(ctx, apiVersion, kind, namespace, "")
	}
	out := map[string]string{}
	r.each(t, list, func(name string, o map[string]any) {
		if object.Text(o, "type") != "helm.sh/release.v1" && !strings.Contains(name, "extension-apiserver-authentication") && !strings.Contains(name, "IPAddress") {
			out[name] = plain(t, o)
		}
	})
	return out
}

func (r *rig) each(t testing.TB, list func(ctx context.Context, apiVersion, kind, namespace string) ([]map[string]any, error), see func(string, map[string]any)) {
	t.Helper()
	disco, _ := r.client.Kinds()
	disco.Invalidate()
	lists, err := disco.ServerPreferredResources()
	must(t, err)
	n := 0
	for _, l := range lists {
		for _, kind := range l.APIResources {
			if !slices.Contains(kind.Verbs, "list") || kind.Kind == "Lease" || kind.Kind == "Event" {
				continue
			}
			objects, err := list(t.Context(), l.GroupVersion, kind.Kind, "")
			must(t, err)
			for _, o := range objects {
				ref := object.Of(o)
				if ref.Namespace == "default" && ref.Name == "kubernetes" {
					continue // the API server makes its own Service when it sees fit
				}
				n++
				see(l.GroupVersion+" "+kind.Kind+" "+ref.Namespace+"/"+ref.Name, o)
			}
		}
	}
	if n < 50 {
		t.Fatalf("only %d objects were seen", n)
	}
}

// plain is what of an object is the same in every cluster: nothing that names this
// one object, its addresses and its age.
func plain(t testing.TB, o map[string]any) string {
	t.Helper()
	metadata := maps.Clone(o["metadata"].(map[string]any))
	uid := object.Text(o, "metadata", "uid")
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(metadata, key)
	}
	o = maps.Clone(o)
	o["metadata"] = metadata
	delete(o, "status")
	if spec, ok := o["spec"].(map[string]any); ok && object.Of(o).Kind == "Service" {
		spec = maps.Clone(spec)
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
		o["spec"] = spec
	}
	text, err := json.Marshal(o)
	must(t, err)
	return strings.ReplaceAll(string(text), uid, "UID")
}

// moved are the objects that came, went or changed between two looks.
func moved(before, after map[string]string) []string {
	var out []string
	for name, v := range after {
		if before[name] != v {
			out = append(out, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			out = append(out, "gone: "+name)
		}
	}
	slices.Sort(out)
	return out
}
