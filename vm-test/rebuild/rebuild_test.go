package rebuild

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/bootstrap/rebuild"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/run"
	"github.com/slipway/slipway/internal/sequence"
)

// A node without power: the first of the profile. Its plan says what will be destroyed,
// its rebuild does that and nothing else, and afterwards everything is as before.
func TestDeadNode(t *testing.T) {
	r := newRig(t, desktest.Cluster())
	r.plane.Kill(r.plane.JoinEtcd(true)) // an orphan: a learner of no node
	r.standInDeath()
	r.box.on = true
	planned, err := r.plan(r.options(false, nil))
	must(t, err)
	for _, want := range []string{
		"create snapshot of etcd: before anything is taken from the cluster",
		"destroy Node n1: it comes back under the same name as another machine",
		"destroy Secret kube-system/n1.node-password.k3s: k3s would refuse the reinstalled node, which has another password",
		"destroy CiliumNode n1: it holds addresses of pods that are gone",
		"destroy system disk of n1: its machine is armed in pxed and imaged when it boots from the network; data disks are kept",
		"wait it votes in etcd: comes after the install of n1",
	} {
		if !slices.Contains(planned, want) {
			t.Errorf("the plan does not say %q", want)
		}
	}
	if !slices.ContainsFunc(planned, func(l string) bool { return strings.HasPrefix(l, "destroy member of etcd n1-") }) ||
		!slices.ContainsFunc(planned, func(l string) bool { return strings.HasPrefix(l, "destroy learner of etcd n4-") }) || len(planned) > 16 {
		t.Errorf("the plan:\n%s", strings.Join(planned, "\n"))
	}
	before := r.api.everything(t)
	var half map[string]string
	o := r.options(true, func(o *rebuild.Options) {
		look := o.Join[0].Observe
		o.Join[0].Observe = func(ctx context.Context) ([]sequence.Change, error) {
			if half == nil {
				half = r.api.everything(t)
			}
			return look(ctx)
		}
	})
	if _, err := r.run(o); err != nil {
		t.Fatal(err)
	}
	if got, want := changes(before, half), []string{"gone: CiliumNode n1", "gone: Node n1", "gone: Secret kube-system/n1.node-password.k3s"}; !slices.Equal(got, want) {
		t.Errorf("when the machine was imaged the cluster had changed by %q, not %q", got, want)
	}
	r.finished(before, "CiliumNode n1", "Node n1", "Secret kube-system/n1.node-password.k3s",
		"Replica longhorn-system/db-n1", "Replica longhorn-system/files-n1", "Volume longhorn-system/db", "Volume longhorn-system/files")
	for _, want := range []string{"for the machine of n1 to boot from the network", "for the install of n1: write, 25 %", "and has not said yet that it is ready"} {
		if !strings.Contains(strings.Join(r.heard, "\n"), want) {
			t.Errorf("nobody was told %q:\n%s", want, strings.Join(r.heard, "\n"))
		}
	}
	order := []string{"note cluster", "snapshot", "remove a member", "remove a member", "delete Node n1", "delete Secret kube-system/n1.node-password.k3s", "delete CiliumNode n1", "note armed", "arm", "note installed", "join"}
	if !slices.Equal(r.fuse.did, order) {
		t.Errorf("done was %q, not %q", r.fuse.did, order)
	}
}

// finished checks a cluster after the rebuild: it is whole, and only those objects are
// others than before.
func (r *rig) finished(before map[string]string, others ...string) {
	r.Helper()
	if names, healthy := r.members(); names != "n1 n2 n3" || !healthy {
		r.Errorf("the members of etcd are %s, healthy %v", names, healthy)
	}
	var want []string
	for _, name := range others {
		want = append(want, "changed: "+name)
	}
	if got := changes(before, r.api.everything(r)); !slices.Equal(got, sorted(want)) {
		r.Errorf("the cluster has changed by %q, not %q", got, want)
	}
	if list, err := r.keeper.List(); err != nil || len(list) != 1 || list[0].Why != "before n1 is rebuilt" || r.keeper.Verify(list[0]) != nil {
		r.Errorf("snapshots: %+v, %v", list, err)
	}
	if r.box.installs != 1 {
		r.Errorf("the machine was imaged %d times", r.box.installs)
	}
	runs, err := r.book.Runs(r.Context(), run.Filter{Story: rebuild.Story})
	must(r, err)
	if len(runs) != 1 || !runs[0].Open() {
		r.Errorf("runs: %+v", runs)
	}
	// The same command again has nothing to do.
	did := len(r.fuse.did)
	if again, err := r.run(r.options(true, nil)); err != nil || again != 0 || len(r.fuse.did) != did {
		r.Errorf("again: %d steps, %v, %q", again, err, r.fuse.did[did:])
	}
	must(r, r.end())
}

func (r *rig) end() error {
	j, err := r.book.Look(r.Context(), rebuild.Story, "n1")
	if err != nil {
		return err
	}
	return j.End(r.Context(), "done")
}

// A living node is drained and stopped first; its data disk is wiped, so that Longhorn
// has to forget it. The run is killed after everything that it changes, and the same
// command goes on.
func TestKilledEverywhere(t *testing.T) {
	c := desktest.Cluster()
	c.Nodes[0].Data[0].Policy = cluster.PolicyWipe
	c.Longhorn.DataPath = "/var/lib/longhorn"
	r := newRig(t, c)
	r.alive()
	if _, err := r.plan(r.options(false, nil)); err == nil || !strings.Contains(err.Error(), "n1 is alive and takes pods") {
		t.Fatalf("without --drain: %v", err)
	}
	drain := func(o *rebuild.Options) { o.Drain = true }
	planned, err := r.plan(r.options(false, drain))
	must(t, err)
	for _, want := range []string{
		"change Node n1: takes no new pods", "destroy Pod default/alone: nothing makes it again", "change 1 pods of n1: are evicted: default/web-n1",
		"change k3s on n1: is stopped and does not start again", "destroy Longhorn's disk data of n1: is wiped by the install",
		"destroy Replica db-n1: its disk is wiped by the install; it is built again from another one",
	} {
		if !slices.Contains(planned, want) {
			t.Errorf("the plan does not say %q:\n%s", want, strings.Join(planned, "\n"))
		}
	}
	before := r.api.everything(t)
	kills, last := 0, []string(nil)
	for allowed := 1; ; kills++ {
		if kills > 60 {
			t.Fatalf("it never ends; the last run did %q", last)
		}
		r.fuse = &fuse{left: allowed}
		_, err := r.run(r.options(true, drain))
		if err == nil {
			break
		}
		if !r.fuse.dead {
			t.Fatalf("not killed, and failed: %v\n%s", err, strings.Join(r.heard, "\n"))
		}
		// One that did only what the run before had done as well gets further.
		if slices.Equal(r.fuse.did, last) {
			allowed++
		} else {
			allowed = 1
		}
		last = r.fuse.did
	}
	t.Logf("killed %d times", kills)
	if kills < 15 {
		t.Errorf("killed only %d times", kills)
	}
	r.finishedAfterDrain(before)
}

func (r *rig) finishedAfterDrain(before map[string]string) {
	r.Helper()
	after := r.api.everything(r)
	want := sorted([]string{
		"gone: Pod default/alone", "gone: Pod default/web-n1",
		"changed: CiliumNode n1", "changed: Node n1", "changed: Secret kube-system/n1.node-password.k3s",
		"gone: Replica longhorn-system/db-n1", "gone: Replica longhorn-system/files-n1", "changed: Node longhorn-system/n1",
	})
	got := changes(before, after)
	for i, g := range got { // Longhorn's stand-in may have built them again by now
		got[i] = strings.Replace(g, "changed: Replica", "gone: Replica", 1)
	}
	got = slices.DeleteFunc(got, func(g string) bool { return strings.HasPrefix(g, "changed: Volume") })
	if !slices.Equal(sorted(got), want) {
		r.Errorf("the cluster has changed by %q, not %q", got, want)
	}
	if r.box.installs != 1 {
		r.Errorf("the machine was imaged %d times", r.box.installs)
	}
	if names, healthy := r.members(); names != "n1 n2 n3" || !healthy {
		r.Errorf("the members of etcd are %s, healthy %v", names, healthy)
	}
}
