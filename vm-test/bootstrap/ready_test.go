package bootstrap

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/chart"
	"github.com/slipway/slipway/internal/bootstrap/cilium"
	"github.com/slipway/slipway/internal/bootstrap/flux"
	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/longhorn"
	"github.com/slipway/slipway/internal/bootstrap/nodes"
	"github.com/slipway/slipway/internal/payload/longhornvalues"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/controlplane"
)

// The waits, against the statuses that kubelets and controllers would write. Each
// pause in a wait brings the next of them, so that no clock decides.
func (s *suite) ready(t *testing.T) {
	r := newRig(t, s.parts, controlplane.Start(t, controlplane.Options{}).KubeconfigBytes())
	r.standInNodes(t)
	r.mustRun(t, r.steps(t))
	// Pods need it; the controller manager would make it.
	r.standIn(t, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": "kube-system"}})
	t.Run("nodes and CoreDNS", r.nodesReady)
	t.Run("Cilium", r.ciliumReady)
	t.Run("operator", r.operatorRestarts)
	t.Run("Flux", r.fluxReady)
	t.Run("Longhorn", r.longhornReady)
	t.Run("marks make no node", r.marksMakeNoNode)
	t.Run("Longhorn's chart adopts", r.chartAdopts)
	t.Run("kinds come", r.kindsCome)
	t.Run("driver", r.driver)
}

// scene is what happens at each pause of a wait, one after the other.
type scene struct {
	t    *testing.T
	acts []func()
	at   int
}

// pause lets the next thing happen; when nothing more does, the wait is over.
func (s *scene) pause(context.Context) error {
	if s.at >= len(s.acts) {
		return context.DeadlineExceeded
	}
	s.acts[s.at]()
	s.at++
	return nil
}

// played runs the steps through the scene and checks what was said while waiting.
func (r *rig) played(t *testing.T, s *scene, steps []sequence.Step, want ...string) {
	t.Helper()
	_, events, err := r.run(t, steps)
	var said []string
	for _, e := range events {
		if e.Kind == sequence.Waiting {
			said = append(said, e.Words)
		}
	}
	if err != nil {
		t.Errorf("after %d of %d acts: %v", s.at, len(s.acts), err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, w) }) {
			t.Errorf("nobody said %q", w)
		}
	}
	if t.Failed() {
		t.Logf("said:\n%s", strings.Join(said, "\n"))
	}
}

func conditions(list ...map[string]any) []any {
	var out []any
	for _, c := range list {
		c["lastTransitionTime"] = "2026-01-01T00:00:00Z"
		if c["reason"] == nil {
			c["reason"] = "StandIn"
		}
		if c["message"] == nil {
			c["message"] = ""
		}
		out = append(out, c)
	}
	return out
}

func condition(kind, status, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func (r *rig) nodesReady(t *testing.T) {
	node := func(name string) object.Ref { return object.Ref{APIVersion: "v1", Kind: "Node", Name: name} }
	coredns := object.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "coredns"}
	s := &scene{t: t}
	s.acts = []func(){
		func() {
			for _, n := range r.cluster.Nodes {
				r.standInStatus(t, node(n.Name), map[string]any{"conditions": conditions(condition("Ready", "False", "cni plugin not initialized"))})
			}
		},
		func() {
			for _, n := range r.cluster.Nodes {
				r.standInStatus(t, node(n.Name), map[string]any{"conditions": conditions(condition("Ready", "True", ""))})
			}
		},
		func() { r.standIn(t, deployment(coredns, "k8s-app", "kube-dns")) },
		func() {
			r.standInStatus(t, coredns, map[string]any{"availableReplicas": int64(1), "replicas": int64(1), "readyReplicas": int64(1)})
		},
		func() {
			r.standIn(t, map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
				"metadata":  map[string]any{"name": "kube-dns-1", "namespace": "kube-system", "labels": map[string]any{"kubernetes.io/service-name": "kube-dns"}},
				"endpoints": []any{map[string]any{"addresses": []any{"10.42.0.2"}, "conditions": map[string]any{"ready": true}}}})
		},
	}
	r.played(t, s, nodes.Ready(r.network().Nodes, kube.Open(r.open), s.pause),
		"node n1: is not Ready: no report yet", "node n1: is not Ready: cni plugin not initialized",
		"CoreDNS: k3s has not installed it yet", "CoreDNS: no pod of it is available", "CoreDNS: no address is ready behind its Service")
}

func deployment(ref object.Ref, label, value string) map[string]any {
	labels := map[string]any{label: value}
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}}}}}
}

// pod is a pod of the given label, on a node if that is not empty.
func pod(name, node, label, value string) map[string]any {
	spec := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}, "terminationGracePeriodSeconds": int64(600)}
	if node != "" {
		spec["nodeName"] = node
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "labels": map[string]any{label: value}}}
}

// standInAgents answer as agents do, on unix sockets; well says of which node it
// is well.
func standInAgents(t *testing.T, well map[string]bool) cilium.Agent {
	return func(ctx context.Context, node string) (net.Conn, error) {
		near, far := net.Pipe()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			state, message := "Ok", "1.20.2"
			if !well[node] {
				state, message = "Failure", "Kubernetes API server unreachable"
			}
			if q.URL.Path != "/v1/healthz" {
				http.NotFound(w, q)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{
				"cilium": map[string]any{"state": state, "msg": message}, "kubernetes": map[string]any{"state": "Ok", "msg": "1.34"},
				"kube-proxy-replacement": map[string]any{"mode": "True"},
			})
		})}
		go server.Serve(&single{conn: far})
		t.Cleanup(func() { server.Close() })
		return near, nil
	}
}

// single is a listener with one connection.
type single struct{ conn net.Conn }

func (s *single) Accept() (net.Conn, error) {
	if s.conn == nil {
		return nil, net.ErrClosed
	}
	c := s.conn
	s.conn = nil
	return c, nil
}
func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{Name: cilium.SocketPath, Net: "unix"} }

func (r *rig) ciliumReady(t *testing.T) {
	agents := object.Ref{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "kube-system", Name: "cilium"}
	operator := object.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "cilium-operator"}
	class := object.Ref{APIVersion: "gateway.networking.k8s.io/v1", Kind: "GatewayClass", Name: "cilium"}
	live, err := r.client.Get(t.Context(), agents)
	must(t, err)
	rollout := func(desired, updated, ready int64) {
		r.standInStatus(t, agents, map[string]any{"observedGeneration": object.Int(live, "metadata", "generation"),
			"desiredNumberScheduled": desired, "updatedNumberScheduled": updated, "currentNumberScheduled": updated, "numberReady": ready, "numberMisscheduled": int64(0)})
	}
	well := map[string]bool{"n1": true, "n2": true}
	s := &scene{t: t}
	s.acts = []func(){
		func() { rollout(2, 0, 0) },
		func() { rollout(3, 1, 1) },
		func() {
			r.standIn(t, pod("cilium-x", "n3", "k8s-app", "cilium"))
			r.standInStatus(t, object.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "cilium-x"}, map[string]any{
				"containerStatuses": []any{map[string]any{"name": "cilium-agent", "image": "i", "imageID": "", "ready": false, "restartCount": int64(0),
					"state": map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff", "message": "not found in the bundle"}}}}})
			rollout(3, 3, 2)
		},
		func() { rollout(3, 3, 3) },
		func() {
			r.standInStatus(t, operator, map[string]any{"replicas": int64(2), "readyReplicas": int64(1), "availableReplicas": int64(1)})
		},
		func() { well["n3"] = true },
		func() {
			r.standInStatus(t, class, map[string]any{"conditions": conditions(condition("Accepted", "False", "no controller"))})
		},
		func() {
			r.standInStatus(t, class, map[string]any{"conditions": conditions(condition("Accepted", "True", ""))})
		},
	}
	// One operator of two is enough.
	r.played(t, s, cilium.Ready(r.network(), kube.Open(r.open), standInAgents(t, well), s.pause),
		"its controller has not seen the newest version", "it is wanted on 2 of 3 nodes", "1 of 3 nodes have the newest version",
		"ready on 2 of 3 nodes; pod cilium-x on n3: container cilium-agent waits: not found in the bundle", "Deployment kube-system/cilium-operator: no pod of it is available",
		"agent on n3: Failure: Kubernetes API server unreachable", "GatewayClass cilium: is not accepted")
}

// An operator that is older than a definition is restarted, one that is younger is not.
func (r *rig) operatorRestarts(t *testing.T) {
	steps := cilium.Install(r.network(), kube.Open(r.open))
	restart := steps[len(steps)-1:]
	r.standIn(t, pod("operator-old", "", "io.cilium/app", "operator"))
	r.standIn(t, pod("operator-going", "n1", "io.cilium/app", "operator"))
	if did, _ := r.mustRun(t, restart); did != 0 {
		t.Error("an operator that is younger than the definitions was restarted")
	}
	born, err := r.client.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "operator-old"})
	must(t, err)
	second := object.Time(born, "metadata", "creationTimestamp").Add(time.Second)
	time.Sleep(time.Until(second.Add(100 * time.Millisecond))) // ages are told in whole seconds

	gone := object.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "tlsroutes.gateway.networking.k8s.io"}
	must(t, r.client.Delete(t.Context(), gone))
	r.standInGone(t, gone)
	r.mustRun(t, steps[:1])
	if plan := strings.Join(r.plan(t, restart), "\n"); !strings.Contains(plan, "cilium: change restart Pod kube-system/operator-old: it was started before tlsroutes was changed at ") {
		t.Errorf("the plan says %q", plan)
	}
	if did, _ := r.mustRun(t, restart); did != 1 {
		t.Errorf("did %d steps", did)
	}
	if _, err := r.client.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "operator-old"}); err == nil {
		t.Error("the old operator is still there")
	}
}

// standInGone waits until the API server has really let go of an object.
func (r *rig) standInGone(t *testing.T, ref object.Ref) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := r.client.Get(t.Context(), ref); err != nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s is still there", ref)
		}
	}
}

func (r *rig) fluxReady(t *testing.T) {
	source := object.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
	sync := object.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"}
	const revision = "main@sha1:1111111111111111111111111111111111111111"
	artifact := func(revision string) map[string]any {
		return map[string]any{"revision": revision, "path": "p", "url": "http://x", "lastUpdateTime": "2026-01-01T00:00:00Z", "digest": "sha256:" + strings.Repeat("0", 64)}
	}
	s := &scene{t: t}
	s.acts = []func(){
		func() {
			for _, o := range r.flux {
				if ref := object.Of(o); ref.Kind == "Deployment" {
					r.standInStatus(t, ref, map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1)})
				}
			}
		},
		func() {
			r.standInStatus(t, source, map[string]any{"observedGeneration": int64(1), "conditions": conditions(condition("Ready", "False", "authentication required"))})
		},
		func() {
			r.standInStatus(t, source, map[string]any{"observedGeneration": int64(1), "artifact": artifact("main@sha1:old"), "conditions": conditions(condition("Ready", "True", ""))})
		},
		func() {
			r.standInStatus(t, source, map[string]any{"observedGeneration": int64(1), "artifact": artifact(revision), "conditions": conditions(condition("Ready", "True", ""))})
		},
		func() {
			r.standInStatus(t, sync, map[string]any{"observedGeneration": int64(1), "lastAppliedRevision": revision, "conditions": conditions(condition("Ready", "True", ""))})
		},
	}
	steps := append(flux.Ready(r.gitops(), source, revision, kube.Open(r.open), s.pause), flux.Synced(sync, revision, kube.Open(r.open), s.pause))
	r.played(t, s, steps, "and 2 more", "GitRepository flux-system/flux-system: its controller has not seen the newest version",
		"is not Ready: authentication required", "is at main@sha1:old, awaited is "+revision)
}

// standInManager writes what Longhorn's manager would write about a node.
func (r *rig) standInManager(t *testing.T, node string, disks, status map[string]any) {
	ref := object.Ref{APIVersion: "longhorn.io/v1beta2", Kind: "Node", Namespace: "longhorn-system", Name: node}
	r.standIn(t, map[string]any{"apiVersion": ref.APIVersion, "kind": "Node", "metadata": map[string]any{"name": node, "namespace": ref.Namespace},
		"spec": map[string]any{"name": node, "allowScheduling": true, "disks": disks}})
	if status != nil {
		r.standInStatus(t, ref, map[string]any{"diskStatus": status})
	}
}

func (r *rig) longhornReady(t *testing.T) {
	must(t, r.client.Apply(t.Context(), longhorn.Space(), nil))
	storage := r.storage(t)
	storage.Release = storage.Marks // any: it says that the chart is installed
	disk := func(path string) map[string]any {
		return map[string]any{"path": path, "allowScheduling": true, "diskType": "filesystem", "storageReserved": int64(0)}
	}
	status := func(ready, message string) map[string]any {
		return map[string]any{"data": map[string]any{"conditions": conditions(condition("Ready", ready, message), condition("Schedulable", ready, message))}}
	}
	ours := map[string]any{"data": disk("/var/lib/longhorn/data/")}
	s := &scene{t: t}
	s.acts = []func(){
		func() { r.standInManager(t, "n1", map[string]any{}, nil) },
		func() {
			r.standInManager(t, "n1", ours, status("False", "record diskUUID doesn't match the one on the disk"))
		},
		func() {
			for _, n := range r.cluster.Nodes {
				r.standInManager(t, n.Name, ours, status("True", ""))
			}
		},
	}
	steps := longhorn.Ready(storage, kube.Open(r.open), s.pause)
	r.played(t, s, steps, "Longhorn on n1: its manager has not started there", "Longhorn has not taken it",
		"is not Ready: record diskUUID doesn't match the one on the disk (the disk is not the one that Longhorn knew")

	r.standInManager(t, "n2", map[string]any{"data": disk("/var/lib/longhorn/data"), "default-disk-1": disk("/var/lib/longhorn/")}, nil)
	if _, _, err := r.run(t, steps); err == nil || !strings.Contains(err.Error(), "longhorn uses /var/lib/longhorn on n2, which is no data disk of the profile") {
		t.Errorf("a disk on the system disk: %v", err)
	}
}

// The label of a node that has not registered does not make that node.
func (r *rig) marksMakeNoNode(t *testing.T) {
	c := r.cluster
	c.Nodes = append(slices.Clone(c.Nodes), c.Nodes[0])
	c.Nodes[len(c.Nodes)-1].Name = "n4"
	marks, err := longhorn.Marks(c)
	must(t, err)
	m := kube.Marks{Open: r.open, Objects: marks}
	changes, err := m.Changes(t.Context())
	must(t, err)
	if len(changes) != 1 || changes[0].Verb != sequence.Await || changes[0].What != "Node n4" {
		t.Errorf("changes %+v", changes)
	}
	if err := m.Apply(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Node n4 has not registered") {
		t.Errorf("applying: %v", err)
	}
	if _, err := r.client.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "Node", Name: "n4"}); err == nil {
		t.Error("there is a node n4 now")
	}
}

// A chart that holds the definitions takes over those that a build without it made.
// The chart is a stand-in: the real definitions as the real chart has them, and its
// helpers.
func (r *rig) chartAdopts(t *testing.T) {
	archive := pack(t, map[string][]byte{
		"longhorn/Chart.yaml":             []byte("apiVersion: v2\nname: longhorn\nversion: 1.9.0\n"),
		"longhorn/templates/_helpers.tpl": []byte("{{- define \"longhorn.labels\" }}\nfrom: chart\n{{- end }}{{- define \"release_namespace\" }}{{ .Release.Namespace }}{{- end }}"),
		"longhorn/templates/crds.yaml":    r.template,
	})
	i := chart.Installation{Open: r.open, Release: chart.Release{Name: "longhorn", Namespace: "longhorn-system", Archive: archive, Values: longhornvalues.Values(r.cluster)}}
	storage := r.storage(t)
	storage.Release, storage.Values, storage.Namespace = i, i.Release.Values, r.manifest(longhorn.Space())
	steps := longhorn.Install(storage)
	if did, _ := r.mustRun(t, steps); did != 1 {
		t.Errorf("did %d steps, want the release alone", did)
	}
	o, err := r.client.Get(t.Context(), object.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "volumes.longhorn.io"})
	must(t, err)
	if object.Text(o, "metadata", "labels", "from") != "chart" {
		t.Errorf("the chart's label is not on the definition: %v", object.At(o, "metadata", "labels"))
	}
	if did, _ := r.mustRun(t, steps); did != 0 {
		t.Errorf("the second run did %d steps", did)
	}
}

// A kind that somebody else defines while we run is found.
func (r *rig) kindsCome(t *testing.T) {
	ship := map[string]any{"apiVersion": "test.example/v1", "kind": "Ship", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}
	if changes, err := r.client.Changes(t.Context(), []map[string]any{ship}); err != nil || len(changes) != 1 {
		t.Fatalf("before its kind is known: %v, %v", changes, err)
	}
	r.standIn(t, map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "ships.test.example"},
		"spec": map[string]any{"group": "test.example", "scope": "Cluster", "names": map[string]any{"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}})
	for late := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := r.client.Apply(t.Context(), []map[string]any{ship}, nil)
		if err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("its kind was defined, and still: %v", err)
		}
	}
}
