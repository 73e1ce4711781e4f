package rebuild

import (
	"context"
	"errors"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/rebuild"
	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/run"
)

// errKilled is how a run ends that was killed.
var errKilled = errors.New("killed")

// fuse stands between a run and everything that it changes. It lets a number of
// changes happen; after the last of them the run is dead: it does not hear the answer,
// and nothing that it does afterwards reaches anybody.
type fuse struct {
	left int // 0: it never blows
	dead bool
	kill context.CancelCauseFunc
	did  []string
}

func (f *fuse) change(what string, do func() error) error {
	if f.dead {
		return errKilled
	}
	err := do()
	f.did = append(f.did, what)
	if f.left--; f.left == 0 {
		f.dead = true
		f.kill(errKilled)
		return errKilled
	}
	return err
}

type changer struct {
	api
	f *fuse
}

func (f *fuse) changer(a api) changer { return changer{a, f} }

func (c changer) Delete(ctx context.Context, r object.Ref) error {
	return c.f.change("delete "+r.String(), func() error { return c.api.Delete(ctx, r) })
}

func (c changer) Patch(ctx context.Context, r object.Ref, change map[string]any) error {
	return c.f.change("patch "+r.String(), func() error { return c.api.Patch(ctx, r, change) })
}

func (c changer) Evict(ctx context.Context, r object.Ref) (blocked string, err error) {
	err = c.f.change("evict "+r.String(), func() (err error) {
		blocked, err = c.api.Evict(ctx, r)
		return err
	})
	return blocked, err
}

type etcdFuse struct {
	rebuild.Etcd
	f *fuse
}

func (f *fuse) etcd(e rebuild.Etcd) rebuild.Etcd { return etcdFuse{e, f} }

func (e etcdFuse) Remove(ctx context.Context, id member.ID) error {
	return e.f.change("remove a member", func() error { return e.Etcd.Remove(ctx, id) })
}

type snapshotFuse struct {
	rebuild.Snapshots
	f *fuse
}

func (f *fuse) snapshots(s rebuild.Snapshots) rebuild.Snapshots { return snapshotFuse{s, f} }

func (s snapshotFuse) Ensure(ctx context.Context, run, why string, tell func(string)) error {
	return s.f.change("snapshot", func() error { return s.Snapshots.Ensure(ctx, run, why, tell) })
}

type machineFuse struct {
	rebuild.Machines
	f *fuse
}

func (f *fuse) machines(m rebuild.Machines) rebuild.Machines { return machineFuse{m, f} }

func (m machineFuse) Arm(ctx context.Context, node string, o verdict.Order) error {
	return m.f.change("arm", func() error { return m.Machines.Arm(ctx, node, o) })
}

type journalFuse struct {
	rebuild.Journal
	f *fuse
}

func (f *fuse) journal(j rebuild.Journal) rebuild.Journal { return journalFuse{j, f} }

func (j journalFuse) Note(ctx context.Context, step, state, note string) error {
	return j.f.change("note "+step, func() error { return j.Journal.Note(ctx, step, state, note) })
}

func (j journalFuse) Record(ctx context.Context) (run.Record, error) {
	if j.f.dead {
		return run.Record{}, errKilled
	}
	return j.Journal.Record(ctx)
}

type nodeFuse struct {
	rebuild.Node
	f *fuse
}

func (f *fuse) node(n rebuild.Node) rebuild.Node { return nodeFuse{n, f} }

// Run counts what changes something; questions do not.
func (n nodeFuse) Run(ctx context.Context, command string, stdin []byte) (out []byte, err error) {
	for _, word := range []string{"mv ", "systemctl stop", "systemctl reboot"} {
		if strings.Contains(command, word) {
			err = n.f.change(word, func() (err error) {
				out, err = n.Node.Run(ctx, command, stdin)
				return err
			})
			return out, err
		}
	}
	return n.Node.Run(ctx, command, stdin)
}
