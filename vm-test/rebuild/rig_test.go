package rebuild

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/book"
	"github.com/slipway/slipway/internal/bootstrap/etcd"
	"github.com/slipway/slipway/internal/bootstrap/machines"
	"github.com/slipway/slipway/internal/bootstrap/rebuild"
	"github.com/slipway/slipway/internal/bootstrap/snapshot"
	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/pxed/build/buildtest"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
	"github.com/slipway/slipway/internal/pxed/httpd"
	"github.com/slipway/slipway/internal/pxed/keep"
	"github.com/slipway/slipway/internal/sequence"
	"github.com/slipway/slipway/vm-test/controlplane"
	"github.com/slipway/slipway/vm-test/sshnode"
)

const operatorToken = "the operator's token"

// rig is a cluster of three servers, of which n1 is rebuilt.
type rig struct {
	*testing.T
	plane   *controlplane.Plane
	api     api
	etcd    *etcd.Client
	cluster cluster.Cluster
	pxed    string // URL
	book    *book.Book
	keeper  snapshot.Keeper

	before *sshnode.Node // n1 as it was; nil when it is dead
	after  *sshnode.Node // n1 as it was installed
	box    *box          // its machine
	fuse   *fuse
	heard  []string // what was told
}

func newRig(t *testing.T, c cluster.Cluster) *rig {
	t.Helper()
	r := &rig{T: t, plane: controlplane.Start(t, controlplane.Options{Etcd: 3}), cluster: c}
	for i, m := range r.plane.Members() {
		u, err := url.Parse(m.PeerURL)
		must(t, err)
		r.cluster.Nodes[i].Interfaces = []cluster.Interface{{MAC: r.cluster.Nodes[i].Interfaces[0].MAC, Addresses: []netip.Prefix{netip.MustParsePrefix(u.Hostname() + "/24")}}}
	}
	r.etcd = etcd.New(etcd.Config{Endpoints: r.plane.EtcdEndpoints(), TLS: r.plane.EtcdTLS()})
	t.Cleanup(func() { r.etcd.Close() })
	r.api = connect(t, r.plane.KubeconfigBytes())
	r.openPxed()
	r.keeper = snapshot.Keeper{Dir: filepath.Join(t.TempDir(), "snapshots"), Etcd: r.etcd, Environment: c.Environment, Keep: 5, Now: time.Now}
	r.box = &box{rig: r}
	r.standInCluster()
	return r
}

// openPxed is a pxed with its ledger, as far as HTTP goes.
func (r *rig) openPxed() {
	r.Helper()
	l, err := ledger.Open(r.Context(), ledger.Options{Dir: r.TempDir()})
	must(r, err)
	r.Cleanup(func() { must(r, l.Close()) })
	d := desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: keep.Ledger{Ledger: l}, Now: time.Now})
	s := httptest.NewServer(httpd.New(httpd.Options{
		Desk: d, Build: buildtest.Open(r, buildtest.Contents()), Token: operatorToken, Log: slog.New(slog.DiscardHandler), Counter: silent{}, Book: keep.Book{Ledger: l},
	}))
	r.Cleanup(s.Close)
	r.pxed = s.URL
	c, err := client.Remote(s.URL, operatorToken)
	must(r, err)
	r.book, err = book.Open(r.Context(), book.Options{Environment: r.cluster.Environment, Pxed: c, Required: true})
	must(r, err)
}

type silent struct{}

func (silent) Refused(string)                           {}
func (silent) Booted(string)                            {}
func (silent) Served(string, int, int64, time.Duration) {}

// reach is n1 by SSH: as it was, as it is installed, or not at all.
func (r *rig) reach(context.Context) (rebuild.Node, error) {
	n := r.before
	if r.after != nil {
		n = r.after
	}
	if n == nil {
		return nil, errors.New("no route to host")
	}
	login, err := ssh.Open("", []string{n.KeyFile}, nil)
	if err != nil {
		return nil, err
	}
	h := ssh.New(ssh.Options{Node: "n1", Address: n.Address, User: sshnode.Operator, HostKeys: []string{n.HostKey}, Login: login})
	r.Cleanup(func() { h.Close() })
	return r.fuse.node(h), nil
}

// options are those of a rebuild of n1. begin says whether it is meant, or planned.
func (r *rig) options(begin bool, change func(*rebuild.Options)) rebuild.Options {
	r.Helper()
	if r.fuse == nil {
		r.fuse = &fuse{}
	}
	j, err := r.book.Look(r.Context(), rebuild.Story, "n1")
	if begin {
		j, _, err = r.book.Begin(r.Context(), rebuild.Story, "n1", "the test", time.Now())
	}
	must(r, err)
	o := rebuild.Options{
		Cluster: r.cluster, Node: r.cluster.Nodes[0], Run: j.ID, Order: verdict.Order{Valid: time.Hour},
		Reader: r.api, Changer: r.fuse.changer(r.api), Etcd: r.fuse.etcd(r.etcd), Snapshots: r.fuse.snapshots(r.keeper),
		Machines: r.fuse.machines(machines.Machines{Pxed: r.book.Pxed()}), Journal: r.fuse.journal(j), Runs: r.book,
		Reach: r.reach, Pause: r.pause, Join: []sequence.Step{r.standInJoin()},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// pause lets the others do their part instead of letting time pass.
func (r *rig) pause(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.standInLonghorn()
	r.box.act()
	return nil
}

// run does the steps and returns what was told.
func (r *rig) run(o rebuild.Options) (did int, err error) {
	ctx, stop := context.WithTimeout(r.Context(), 3*time.Minute)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.fuse.kill = cancel
	return sequence.Runner{Now: time.Now, On: r.on}.Run(ctx, rebuild.Steps(o))
}

func (r *rig) on(e sequence.Event) {
	if e.Words != "" {
		r.heard = append(r.heard, e.Step+": "+e.Words)
	}
}

// plan gives the changes, one line each.
func (r *rig) plan(o rebuild.Options) (lines []string, err error) {
	_, err = sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		for _, c := range e.Changes {
			lines = append(lines, string(c.Verb)+" "+c.What+": "+c.Why)
		}
	}}.Plan(r.Context(), rebuild.Steps(o))
	return lines, err
}

// members are the names of the members of etcd without their suffix, and whether all are healthy voters.
func (r *rig) members() (names string, healthy bool) {
	r.Helper()
	s, err := r.etcd.State(r.Context())
	must(r, err)
	healthy = true
	var out []string
	for _, m := range s.Members {
		name, _, _ := strings.Cut(m.Name, "-")
		out = append(out, name)
		healthy = healthy && s.Health[m.ID].Healthy && !m.Learner
	}
	return strings.Join(sorted(out), " "), healthy
}
