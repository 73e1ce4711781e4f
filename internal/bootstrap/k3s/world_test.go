package k3s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/sequence"
)

// world is three servers as far as commands and files go: what k3s and etcd would do
// when they are started is done at once, or over several looks. The real k3s is met
// in vm-test.
type world struct {
	t        *testing.T
	cluster  cluster.Cluster
	nodes    map[string]*fake
	etcd     member.State
	recorded *identity.Cluster
	made     int // clusters that were ever started
	asked    []string
	token    string
	born     []string

	ops, cutAt int // the cutAt-th command or file is the last thing that happens; 0 is never
	order      []string
	surveys    int
}

// fake is one node.
type fake struct {
	world   *world
	name    string
	silent  bool
	files   map[string]string
	modes   map[string]fs.FileMode
	k       facts.K3s
	journal []string
	since   int                // lines of the journal before the last question for the time
	slow    int                // looks until a start has its effect
	refuses func(*fake) string // what k3s says instead of starting
	failed  error
}

var errCut = errors.New("the power failed")

func newWorld(t *testing.T) *world {
	t.Helper()
	p, err := profilefile.Load(filepath.Join("..", "..", "..", "profiles", "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cluster: p.Cluster, nodes: map[string]*fake{}, token: "token-4711", etcd: member.State{Health: map[member.ID]member.Health{}}}
	for _, n := range p.Cluster.Nodes {
		w.nodes[n.Name] = &fake{world: w, name: n.Name, files: map[string]string{}, modes: map[string]fs.FileMode{}, k: facts.K3s{Unit: "k3s.service", State: "inactive"}}
	}
	return w
}

func (w *world) options() Options {
	return Options{
		Cluster: w.cluster, Survey: w,
		Node:     func(name string) Node { return w.nodes[name] },
		Recorded: func(context.Context) (*identity.Cluster, error) { return w.recorded, nil },
		Etcd: func(_ context.Context, via string) (member.State, error) {
			if f := w.nodes[via]; f.silent || f.k.State != "active" {
				return member.State{}, fmt.Errorf("etcd on %s: connection refused", via)
			}
			state := w.etcd
			state.Members = slices.Clone(state.Members)
			return state, nil
		},
		Token: func() (string, error) { return w.token, nil },
		Pause: func(ctx context.Context) error { return context.Cause(ctx) },
		Born: func(_ context.Context, via string) error {
			w.born = append(w.born, via)
			return nil
		},
	}
}

// Ask implements Survey, and always anew.
func (w *world) Ask(_ context.Context, names ...string) []facts.Seen {
	var out []facts.Seen
	w.surveys++
	for _, name := range names {
		f := w.nodes[name]
		s := facts.Seen{Node: name, Facts: facts.Facts{Node: name, K3s: f.k}, DropIns: map[string][]byte{}}
		if f.silent {
			s = facts.Seen{Node: name, Err: errors.New(name + ": no route to host")}
		}
		s.Facts.K3s.Init = facts.ConfigInit([]byte(f.files[k3sconf.ConfigPath]))
		_, s.Facts.K3s.Config = f.files[k3sconf.ConfigPath]
		for path, content := range f.files {
			if dir, file := filepath.Split(path); dir == k3sconf.DropInDir+"/" {
				s.DropIns[file] = []byte(content)
			}
		}
		out = append(out, s)
	}
	return out
}

func (w *world) Forget(...string) {}

// step is the place at which the power may fail.
func (w *world) step(what string) error {
	w.ops++
	w.order = append(w.order, what)
	if w.cutAt > 0 && w.ops >= w.cutAt {
		return errCut
	}
	return nil
}

func (f *fake) Get(_ context.Context, path string) ([]byte, error) {
	if err := f.world.step("get " + f.name + " " + path); err != nil {
		return nil, err
	}
	text, ok := f.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (f *fake) Put(_ context.Context, path string, perm fs.FileMode, data []byte) error {
	f.files[path], f.modes[path] = string(data), perm
	return f.world.step("put " + f.name + " " + path)
}

func (f *fake) Run(_ context.Context, command string, _ []byte) ([]byte, error) {
	switch {
	case strings.HasPrefix(command, "if [ -e "+k3sconf.TokenPath):
		text, ok := f.files[k3sconf.TokenPath]
		if !ok {
			return nil, f.world.step("token of " + f.name)
		}
		return []byte(digest.Of([]byte(text)).Hex() + "  -\n"), f.world.step("token of " + f.name)
	case strings.HasPrefix(command, "date +%s; systemctl"):
		f.since = len(f.journal)
		f.start()
		return []byte("1800000000\n"), f.world.step("start " + f.name)
	case strings.HasPrefix(command, "date +%s; :"):
		f.since = len(f.journal)
		return []byte("1800000000\n"), f.world.step("leave " + f.name)
	case strings.HasPrefix(command, "systemctl show"):
		f.tick()
		text := fmt.Sprintf("ActiveState=%s\nResult=success\nConditionResult=yes\nNRestarts=0\n\n%s\n", f.k.State, strings.Join(f.journal[f.since:], "\n"))
		return []byte(text), f.world.step("look at " + f.name)
	}
	f.world.t.Errorf("%s was told: %s", f.name, command)
	return nil, errors.New("unknown command")
}

// start is systemctl start or restart.
func (f *fake) start() {
	f.k.State = "activating"
	if f.slow == 0 {
		f.effect()
	}
}

// tick lets time pass.
func (f *fake) tick() {
	if f.slow > 0 {
		if f.slow--; f.slow == 0 && f.k.State == "activating" {
			f.effect()
		}
	}
}

// effect is what k3s does with the configuration that it finds.
func (f *fake) effect() {
	w := f.world
	if f.refuses != nil {
		if line := f.refuses(f); line != "" {
			f.journal = append(f.journal, line)
			return
		}
	}
	config := f.files[k3sconf.ConfigPath]
	token := strings.TrimSpace(f.files[k3sconf.TokenPath])
	if !f.k.Etcd {
		switch {
		case facts.ConfigInit([]byte(config)):
			w.made++
			f.k.CA, f.k.TokenCA = digest.Of([]byte(fmt.Sprint("cluster", w.made))), fmt.Sprint("hash", w.made)
		default:
			through := w.through(config)
			if through == nil || through.k.State != "active" || !strings.HasSuffix(token, w.token) || strings.HasPrefix(token, "K10") && !strings.HasPrefix(token, "K10"+through.k.TokenCA+"::") {
				return // it tries again and again
			}
			f.k.CA, f.k.TokenCA = through.k.CA, through.k.TokenCA
		}
		w.add(f.name)
	}
	f.k.Etcd, f.k.State, f.k.Joined, f.k.Member = true, "active", true, f.name+"-1"
}

// through is the server that a configuration names.
func (w *world) through(config string) *fake {
	for _, n := range w.cluster.Nodes {
		if strings.Contains(config, "server: \""+k3sconf.URL(n.Address())+"\"") || strings.Contains(config, "server: "+k3sconf.URL(n.Address())+"\n") {
			return w.nodes[n.Name]
		}
	}
	return nil
}

func (w *world) add(name string) {
	for _, n := range w.cluster.Nodes {
		if n.Name == name {
			m := member.Member{ID: member.ID(len(w.etcd.Members) + 1), Name: name + "-1", PeerURLs: []string{"https://" + n.Address().String() + ":2380"}}
			w.etcd.Members = append(w.etcd.Members, m)
			w.etcd.Health[m.ID] = member.Health{Answers: true, Healthy: true}
		}
	}
}

// wipe is a node that was installed anew: nothing of it is left, but in etcd.
func (w *world) wipe(name string) {
	w.nodes[name].files, w.nodes[name].k = map[string]string{}, facts.K3s{Unit: "k3s.service", State: "inactive"}
}

// forget takes a node's member out of etcd, as rebuild does.
func (w *world) forget(name string) {
	w.etcd.Members = slices.DeleteFunc(w.etcd.Members, func(m member.Member) bool { return m.Name == name+"-1" })
}

// run runs the steps; it returns what happened, in words.
func (w *world) run() (events []string, err error) {
	var clock time.Time
	r := sequence.Runner{
		Now: func() time.Time { clock = clock.Add(time.Second); return clock },
		On: func(e sequence.Event) {
			line := fmt.Sprintf("%s %s %s %s", e.Kind, e.Node, e.Step, e.Words)
			events = append(events, strings.TrimSpace(line))
		},
	}
	_, err = r.Run(w.t.Context(), Steps(w.options()))
	return events, err
}

// converged is what must be true in the end, however it came about.
func (w *world) converged(servers ...string) {
	w.t.Helper()
	if len(servers) == 0 {
		servers = slices.Sorted(maps.Keys(w.nodes))
	}
	var voters []string
	for _, m := range w.etcd.Voters() {
		voters = append(voters, strings.TrimSuffix(m.Name, "-1"))
	}
	slices.Sort(voters)
	if !slices.Equal(voters, servers) {
		w.t.Errorf("voters %v, want %v", voters, servers)
	}
	for _, name := range servers {
		f := w.nodes[name]
		config := f.files[k3sconf.ConfigPath]
		if facts.ConfigInit([]byte(config)) || w.through(config) == nil || len(servers) > 1 && w.through(config) == f {
			w.t.Errorf("%s may start a cluster, or joins itself:\n%s", name, config)
		}
		if f.modes[k3sconf.TokenPath] != 0o600 || f.modes[k3sconf.ConfigPath] != 0o600 || strings.Contains(config, w.token) {
			w.t.Errorf("%s: the token can be read", name)
		}
		if f.k.State != "active" {
			w.t.Errorf("k3s on %s is %s", name, f.k.State)
		}
	}
}
