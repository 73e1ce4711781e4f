package rebuild

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/rebuild"
	"github.com/slipway/slipway/internal/bootstrap/volume"
	"github.com/slipway/slipway/internal/bootstrap/volume/volumetest"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/sequence"
)

func longhornRef(kind, name string) object.Ref {
	return object.Ref{APIVersion: volume.API, Kind: kind, Namespace: volume.Namespace, Name: name}
}

func nodeRef(name string) object.Ref { return object.Ref{APIVersion: "v1", Kind: "Node", Name: name} }

// refused runs a rebuild that has to say why not, and to change nothing at all.
func (r *rig) refused(change func(*rebuild.Options), want string) {
	r.Helper()
	before := r.api.everything(r)
	r.fuse = &fuse{}
	_, err := r.run(r.options(true, change))
	if err == nil || !strings.Contains(err.Error(), want) || exit.Of(err) != exit.Refused || diag.HintOf(err) == "" {
		r.Errorf("%v (exit code %d, hint %q)\nnot %q", err, exit.Of(err), diag.HintOf(err), want)
	}
	if len(r.fuse.did) > 0 {
		r.Errorf("refused, and did %q", r.fuse.did)
	}
	if got := changes(before, r.api.everything(r)); len(got) > 0 {
		r.Errorf("refused, and changed %q", got)
	}
	if names, _ := r.members(); names != "n1 n2 n3" {
		r.Errorf("the members of etcd are %s", names)
	}
	if list, err := r.keeper.List(); err != nil || len(list) > 0 {
		r.Errorf("%v, %v", list, err)
	}
	if m, err := r.book.Pxed().Machine(r.Context(), "n1"); err != nil || m.Grant != nil {
		r.Errorf("armed: %+v, %v", m, err)
	}
	must(r, r.end())
}

// Whatever forbids a rebuild forbids it before anything is changed.
func TestRefusals(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.alive()
	drain := func(o *rebuild.Options) { o.Drain = true }
	r.refused(nil, "n1 is alive and takes pods")
	r.refused(func(o *rebuild.Options) { o.Drain, o.Cluster.Status = true, cluster.StatusDesignOnly }, "design-only: no node is rebuilt")

	r.api.make(t, volumetest.Volume("last", "detached", 2), volumetest.Replica("last", "n1", nil), volumetest.Replica("last", "n2", volumetest.Building()), volumetest.Volume("one", "attached", 1), volumetest.Replica("one", "n1", nil))
	r.refused(drain, "of 2 volumes:\n    last (claim data/last): its last healthy replica is on n1; the one on n2 is being built\n    one (claim data/one): it has one replica, on n1")
	for _, ref := range []object.Ref{longhornRef("Volume", "last"), longhornRef("Volume", "one")} {
		must(t, r.api.Delete(t.Context(), ref))
	}

	r.api.status(t, nodeRef("n3"), r.standInNode("n3", false)["status"])
	r.refused(drain, "another node is down: n3 is not Ready")
	r.api.status(t, nodeRef("n3"), r.standInNode("n3", true)["status"])

	other, _, err := r.book.Begin(t.Context(), rebuild.Story, "n2", "ann on desk", time.Now())
	must(t, err)
	r.refused(drain, "another node is being rebuilt: n2")
	must(t, other.End(t.Context(), "abandoned"))

	goOn := r.before
	r.before = nil
	r.refused(drain, "n1 is alive, but SSH does not reach it")
	r.before = goOn

	r.plane.Kill(1)
	r.elected()
	r.refused(drain, "quorum would be lost: etcd has 3 voters; without n1 there are 2, of which 2 have to agree, but only n3 is healthy; n2: ")
}

// Between two steps the world goes on: what was safe a minute ago is looked at again.
func TestLooksAgain(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.alive()
	o := r.options(true, func(o *rebuild.Options) { o.Drain = true })
	steps := rebuild.Steps(o)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.fuse.kill = cancel
	run := func() error {
		_, err := sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
			if e.Kind == sequence.Done && e.Step == "its pods have moved" {
				for _, name := range []string{"db-n2", "db-n3"} {
					must(t, r.api.patch(ctx, longhornRef("Replica", name), m{"spec": volumetest.Failed()}))
				}
			}
		}}.Run(ctx, steps)
		return err
	}
	err := run()
	if err == nil || !strings.Contains(err.Error(), "it has left etcd: data would be lost with n1, of 1 volume") || exit.Of(err) != exit.Refused {
		t.Errorf("%v", err)
	}
	if names, healthy := r.members(); names != "n1 n2 n3" || !healthy {
		t.Errorf("the members of etcd are %s, healthy %v", names, healthy)
	}
	if _, err := os.Stat(r.before.Path("/etc/rancher/k3s/config.yaml")); err != nil {
		t.Errorf("its configuration: %v", err)
	}
	for _, name := range []string{"db-n2", "db-n3"} {
		must(t, r.api.patch(ctx, longhornRef("Replica", name), m{"spec": m{"failedAt": "", "lastFailedAt": ""}}))
	}
	if _, err := r.run(r.options(true, nil)); err != nil { // it is cordoned by now
		t.Errorf("the same command again: %v", err)
	}
	if names, healthy := r.members(); names != "n1 n2 n3" || !healthy || r.box.installs != 1 {
		t.Errorf("the members of etcd are %s, healthy %v; imaged %d times", names, healthy, r.box.installs)
	}
}

// An install that fails ends the run with the machine's own reason; the same command
// arms it once more.
func TestFailedInstall(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.standInDeath()
	r.box.on, r.box.fails = true, 1
	_, err := r.run(r.options(true, nil))
	if err == nil || !strings.Contains(err.Error(), "the machine of n1 was not imaged: ") || !strings.Contains(err.Error(), "foreign data") || diag.HintOf(err) == "" {
		t.Fatalf("%v (hint %q)", err, diag.HintOf(err))
	}
	r.box.on = true
	if _, err := r.run(r.options(true, nil)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.Join(r.fuse.did, "\n"), "\narm\n"); n != 2 || r.box.installs != 1 {
		t.Errorf("armed %d times, imaged %d times", n, r.box.installs)
	}
}

// k3s is refused because the cluster still has, or has again, the node's old password:
// that is said at once, and the same command mends it.
func TestPasswordRejected(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.standInDeath()
	r.box.on = true
	joined := r.standInJoin()
	stale := joined
	configured := false
	stale.Observe = func(context.Context) ([]sequence.Change, error) {
		if configured {
			return nil, nil
		}
		return []sequence.Change{{Verb: sequence.Create, What: "k3s", Why: "is missing"}}, nil
	}
	stale.Do = func(context.Context, sequence.Tell) error {
		configured = true
		r.api.make(t, password("n1"))
		r.after.Write(t, "/etc/rancher/k3s/config.yaml", "server: https://n2:6443\n", 0o600)
		r.after.Write(t, "/run/k3s.log", "level=error msg=\"Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag\"\n", 0o600)
		return nil
	}
	_, err := r.run(r.options(true, func(o *rebuild.Options) { o.Join = []sequence.Step{stale} }))
	if err == nil || !strings.Contains(err.Error(), "the cluster refuses n1: Secret kube-system/n1.node-password.k3s holds the password that it had before its install") || !strings.Contains(diag.HintOf(err), "same command again") {
		t.Fatalf("%v (hint %q)", err, diag.HintOf(err))
	}
	r.fuse.did = nil
	joined.Do = func(ctx context.Context, tell sequence.Tell) error {
		if _, err := r.api.Get(ctx, object.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "kube-system", Name: "n1.node-password.k3s"}); !errors.Is(err, object.ErrNotFound) {
			t.Errorf("it joins while the old password is there: %v", err)
		}
		r.after.Write(t, "/run/k3s.log", "joined\n", 0o600)
		return r.standInJoin().Do(ctx, tell)
	}
	if _, err := r.run(r.options(true, func(o *rebuild.Options) { o.Join = []sequence.Step{joined} })); err != nil {
		t.Fatal(err)
	}
	if want := []string{"delete Secret kube-system/n1.node-password.k3s", "join"}; !slices.Equal(r.fuse.did, want) {
		t.Errorf("the second run did %q, not %q", r.fuse.did, want)
	}
}

// Somebody has put another disk into the node. Longhorn takes that for a fault; it is
// told to forget the old one, but not when it is only not mounted, and not when the
// old one is the last that holds some data.
func TestReplacedDisk(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.standInDeath()
	r.box.on = true
	join := r.standInJoin()
	do := join.Do
	join.Do = func(ctx context.Context, tell sequence.Tell) error {
		broken := volumetest.Node("n1", "Disk data(/var/lib/longhorn/data) on node n1 is not ready: record diskUUID doesn't match the one on the disk ")
		r.api.status(t, object.Of(broken), broken["status"])
		r.after.Write(t, "/run/unmounted", "", 0o600)
		r.api.make(t, volumetest.Volume("last", "detached", 2), volumetest.Replica("last", "n1", nil), volumetest.Replica("last", "n2", volumetest.Failed()))
		return do(ctx, tell)
	}
	options := func() rebuild.Options {
		return r.options(true, func(o *rebuild.Options) { o.Join = []sequence.Step{join} })
	}
	_, err := r.run(options())
	if err == nil || !strings.Contains(err.Error(), "the data disk at /var/lib/longhorn/data is not mounted on n1") {
		t.Fatalf("%v", err)
	}
	must(t, os.Remove(r.after.Path("/run/unmounted")))
	_, err = r.run(options())
	if err == nil || !strings.Contains(err.Error(), "n1 has another disk at /var/lib/longhorn/data than Longhorn knew: data would be lost with n1, of 1 volume") || exit.Of(err) != exit.Refused {
		t.Fatalf("%v", err)
	}
	must(t, r.api.Delete(t.Context(), longhornRef("Volume", "last")))
	r.fuse.did = nil
	if _, err := r.run(options()); err != nil {
		t.Fatal(err)
	}
	n, err := r.api.Get(t.Context(), longhornRef("Node", "n1"))
	must(t, err)
	disk, _ := object.At(n, "spec", "disks", "data").(m)
	if object.Text(disk, "path") != "/var/lib/longhorn/data" || disk["allowScheduling"] != true || object.Text(n, "status", "diskStatus", "data", "diskUUID") != "new-disk-of-n1" {
		t.Errorf("Longhorn has %v, and of its state %v", disk, object.At(n, "status", "diskStatus"))
	}
	for _, want := range []string{"delete Replica longhorn-system/db-n1", "delete Replica longhorn-system/files-n1"} {
		if !slices.Contains(r.fuse.did, want) {
			t.Errorf("%q is not among %q", want, r.fuse.did)
		}
	}
}
