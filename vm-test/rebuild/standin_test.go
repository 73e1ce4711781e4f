package rebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/bootstrap/volume/volumetest"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/sshnode"
)

type m = map[string]any

// standInNode is a Node as its kubelet keeps it.
func (r *rig) standInNode(name string, ready bool) m {
	status, message := "True", "kubelet is posting ready status"
	if !ready {
		status, message = "Unknown", "Kubelet stopped posting node status."
	}
	address := ""
	for _, n := range r.cluster.Nodes {
		if n.Name == name {
			address = n.Address().String()
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	return m{
		"apiVersion": "v1", "kind": "Node", "metadata": m{"name": name, "labels": m{"kubernetes.io/hostname": name}},
		"status": m{
			"addresses":  []any{m{"type": "InternalIP", "address": address}},
			"conditions": []any{m{"type": "Ready", "status": status, "reason": "Kubelet", "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now}},
			"nodeInfo":   m{"machineID": "m-" + name, "kubeletVersion": "v1.34.4", "bootID": "", "systemUUID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"},
		},
	}
}

func password(name string) m {
	return m{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": name + ".node-password.k3s", "namespace": "kube-system"}, "stringData": m{"hash": "of " + name}}
}

func ciliumNode(name string) m {
	return m{"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": m{"name": name}, "spec": m{"addresses": []any{}}}
}

// pod is one that its controller made, or nobody. It ends at once, because no kubelet
// is there to end it.
func pod(name, node, owner string) m {
	meta := m{"name": name, "namespace": "default"}
	if owner != "" {
		meta["ownerReferences"] = []any{m{"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "00000000-0000-4000-8000-000000000001", "controller": true}}
	}
	return m{
		"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec": m{"nodeName": node, "terminationGracePeriodSeconds": int64(0), "containers": []any{m{"name": "c", "image": "c"}}, "automountServiceAccountToken": false, "serviceAccountName": "default"},
	}
}

// standInCluster is what lives in the cluster before a node is lost.
func (r *rig) standInCluster() {
	r.Helper()
	must(r, r.api.Apply(r.Context(), definitions(r), nil))
	r.api.make(r, m{"apiVersion": "v1", "kind": "Namespace", "metadata": m{"name": volume.Namespace}},
		m{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": m{"name": "default", "namespace": "default"}},
		m{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m{"name": "data", "namespace": "default"}, "data": m{"k": "v"}},
		m{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": "n1.node-password.k3s.backup", "namespace": "kube-system"}},
		m{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": "n1.node-password.k3s", "namespace": "default"}})
	for _, name := range []string{"n1", "n2", "n3"} {
		r.api.make(r, r.standInNode(name, true), password(name), ciliumNode(name), volumetest.Node(name, ""),
			pod("web-"+name, name, "ReplicaSet"), pod("agent-"+name, name, "DaemonSet"))
	}
	r.api.make(r, pod("alone", "n1", ""), pod("keeper", "n1", "InstanceManager"))
	for _, v := range []string{"db", "files"} {
		r.api.make(r, volumetest.Volume(v, "attached", 3))
		for _, name := range []string{"n1", "n2", "n3"} {
			r.api.make(r, volumetest.Replica(v, name, nil))
		}
	}
}

// standInDeath is a node without power: its kubelet, its member of etcd and Longhorn's
// replicas there are gone.
func (r *rig) standInDeath() {
	r.Helper()
	r.plane.Kill(0)
	r.elected()
	r.api.status(r, nodeRef("n1"), r.standInNode("n1", false)["status"])
	for _, v := range []string{"db", "files"} {
		must(r, r.api.patch(r.Context(), longhornRef("Replica", v+"-n1"), m{"spec": volumetest.Failed()}))
		r.api.status(r, longhornRef("Volume", v), m{"robustness": "degraded"})
	}
}

// elected waits until those that are left have a leader: the API server has answers
// again only then.
func (r *rig) elected() {
	r.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		healthy := 0
		s, err := r.etcd.State(r.Context())
		for _, m := range s.Voters() {
			if s.Health[m.ID].Healthy {
				healthy++
			}
		}
		if err == nil && healthy == len(s.Voters())-1 {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("etcd has elected nobody: %+v, %v", s, err)
		}
	}
}

// standInLonghorn is its controllers: the state of a disk that is not listed any more
// goes; a node without disks gets one as its annotation says; a new disk gets a state
// and an identity; volumes are built up again on a disk that is in order.
func (r *rig) standInLonghorn() {
	ctx := r.Context()
	n, err := r.api.Get(ctx, longhornRef("Node", "n1"))
	must(r, err)
	specs, _ := object.At(n, "spec", "disks").(m)
	states, _ := object.At(n, "status", "diskStatus").(m)
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if _, listed := specs[key]; !listed {
			r.api.status(r, object.Of(n), m{"diskStatus": m{key: nil}})
		}
	}
	if _, err := r.api.Get(ctx, nodeRef("n1")); err != nil || r.after == nil {
		return
	}
	switch {
	case len(specs) == 0 && len(states) == 0:
		must(r, r.api.patch(ctx, object.Of(n), m{"spec": volumetest.Node("n1", "")["spec"]}))
	case len(specs) > 0 && len(states) == 0:
		fresh := volumetest.Node("n1", "")["status"].(m)
		fresh["diskStatus"].(m)["data"].(m)["diskUUID"] = "new-disk-of-n1"
		r.api.status(r, object.Of(n), fresh)
	case len(specs) > 0 && object.ConditionOf(n, "Ready", "status", "diskStatus", "data", "conditions").True():
		r.standInBuild(object.Text(n, "status", "diskStatus", "data", "diskUUID"))
	}
}

// standInBuild builds the volumes' replicas on n1 up.
func (r *rig) standInBuild(disk string) {
	for _, v := range []string{"db", "files"} {
		o := volumetest.Replica(v, "n1", m{"diskID": disk})
		r.api.make(r, o)
		must(r, r.api.patch(r.Context(), object.Of(o), m{"spec": o["spec"]}))
		r.api.status(r, longhornRef("Volume", v), m{"robustness": "healthy"})
	}
}

// standInJoin is k3s on the reinstalled node: it joins etcd, and registers.
func (r *rig) standInJoin() sequence.Step {
	return sequence.Step{
		Layer: "k3s", Name: "joins", Node: "n1", Deadline: time.Minute,
		Observe: func(ctx context.Context) ([]sequence.Change, error) {
			if _, err := r.api.Get(ctx, nodeRef("n1")); err == nil {
				return nil, nil
			}
			return []sequence.Change{{Verb: sequence.Create, What: "k3s on n1", Why: "is not there"}}, nil
		},
		Do: func(ctx context.Context, _ sequence.Tell) error {
			return r.fuse.change("join", func() error {
				r.plane.Rejoin(0)
				r.api.make(r, password("n1"), r.standInNode("n1", true), ciliumNode("n1"))
				return nil
			})
		},
	}
}

// standInMachine is n1 before its install, behind a real sshd.
func (r *rig) standInMachine() *sshnode.Node {
	r.Helper()
	n := sshnode.Start(r, sshnode.Options{})
	n.Program(r, "systemctl", `case "$1" in
is-active) cat /run/k3s.state 2>/dev/null || { echo inactive; exit 3; } ;;
stop) echo inactive >/run/k3s.state ;;
reboot) touch /run/rebooted ;;
esac`)
	n.Program(r, "journalctl", "cat /run/k3s.log 2>/dev/null; true")
	n.Program(r, "findmnt", "test -e /run/unmounted && exit 1; echo /var/lib/longhorn/data")
	return n
}

// alive lets n1 run k3s behind SSH.
func (r *rig) alive() {
	r.Helper()
	r.before = r.standInMachine()
	r.before.Write(r, "/etc/rancher/k3s/config.yaml", "server: https://n2:6443\n", 0o600)
	r.before.Write(r, "/run/k3s.state", "active\n", 0o644)
}

// box is the machine of n1: it netboots when it is switched on, and is imaged when
// pxed says so. Each call of go_ is one thing that it does.
type box struct {
	*rig
	on       bool // somebody has pressed the button
	fails    int  // so many installs end in an error
	token    string
	ticket   machine.Ticket
	installs int
}

func (b *box) act() {
	b.Helper()
	if b.before != nil {
		if _, err := os.Stat(b.before.Path("/run/rebooted")); err == nil {
			b.before.Stop()
			b.before, b.on = nil, true
		}
	}
	switch {
	case !b.on:
	case b.token == "":
		script := b.ask("GET", machine.PathBoot+"?mac="+desktest.MAC1+"&serial=sn-1", "", nil)
		if found := regexp.MustCompile(`slipway\.ticket=([0-9a-f]{64})`).FindSubmatch(script); found != nil {
			b.token = string(found[1])
			b.ask("POST", machine.PathReport, b.token, desktest.Report(desktest.MAC1, "sn-1"))
		}
	case b.ticket.ID == "":
		must(b, json.Unmarshal(b.ask("GET", machine.PathTicket, b.token, nil), &b.ticket))
		b.ask("POST", machine.PathProgress, b.token, machine.Progress{Stage: machine.StageWrite, Done: 1, Total: 4, Rate: 1})
	case b.fails > 0:
		b.fails--
		receipt := desktest.Receipt(b.ticket, "sn-1")
		receipt.Error, receipt.Written = "disk vda holds foreign data", false
		b.ask("POST", machine.PathReceipt, b.token, receipt)
		b.on, b.token, b.ticket = false, "", machine.Ticket{}
	case b.after == nil:
		b.ask("POST", machine.PathReceipt, b.token, desktest.Receipt(b.ticket, "sn-1"))
		b.after = b.standInMachine()
		b.installs++
	default:
		b.ask("POST", machine.PathHealth, b.token, machine.Ready{Node: "n1", MachineID: "new", Slot: "a"})
		b.on = false
	}
}

func (b *box) ask(method, path, token string, body any) []byte {
	b.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		must(b, err)
		in = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(b.Context(), method, b.pxed+path, in)
	must(b, err)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(q)
	must(b, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(b, err)
	if answer.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return text
}

func sorted(list []string) []string { slices.Sort(list); return list }
