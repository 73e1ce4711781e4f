package k3s

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

func TestFirstDay(t *testing.T) {
	w := newWorld(t)
	events, err := w.run()
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(events, "\n"))
	}
	w.converged()
	if w.made != 1 || !slices.Equal(w.born, []string{"n1"}) {
		t.Errorf("%d clusters were made, born through %q", w.made, w.born)
	}
	var starts []string
	for _, op := range w.order {
		if strings.HasPrefix(op, "start ") {
			starts = append(starts, op)
		}
	}
	if !slices.Equal(starts, []string{"start n1", "start n2", "start n3"}) {
		t.Errorf("started in the order %q", starts)
	}
	if got := w.nodes["n2"].files[k3sconf.TokenPath]; got != "K10hash1::server:token-4711\n" {
		t.Errorf("n2 joins with %q, whatever cluster answers", got)
	}
	if got := w.nodes["n1"].files[k3sconf.TokenPath]; got != "token-4711\n" {
		t.Errorf("n1 starts with %q", got)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		puts := slices.DeleteFunc(slices.Clone(w.order), func(op string) bool { return !strings.HasPrefix(op, "put "+name) })
		if puts[0] != "put "+name+" "+k3sconf.TokenPath {
			t.Errorf("%s: config.yaml, which starts k3s at the next boot, is written before %q", name, puts)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.order, w.surveys = nil, 0
	events, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if !strings.HasPrefix(e, "skipped") {
			t.Errorf("the second run: %s", e)
		}
	}
	for _, op := range w.order {
		if strings.HasPrefix(op, "put") || strings.HasPrefix(op, "start") {
			t.Errorf("the second run: %s", op)
		}
	}
	if w.surveys != 1 || len(w.order) > 3*4 {
		t.Errorf("%d surveys and %d questions, where nothing had to be done: %q", w.surveys, len(w.order), w.order)
	}
}

func TestPlanOfFirstDay(t *testing.T) {
	w := newWorld(t)
	var lines []string
	r := sequence.Runner{Now: time.Now, On: func(e sequence.Event) {
		for _, c := range e.Changes {
			lines = append(lines, strings.Join([]string{string(e.Kind), e.Node, string(c.Verb), c.What, c.Why}, " | "))
		}
	}}
	pending, err := r.Plan(t.Context(), Steps(w.options()))
	if err != nil || pending != 4 {
		t.Errorf("%d pending, %v", pending, err)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"planned | n1 | create | cluster harbor | no node and no ledger knows one; n1 starts it",
		"planned | n2 | create | member of etcd on n2 | it joins through n1",
		"planned | n3 | create | member of etcd on n3 | it joins through n1",
		"planned | n1 | change | " + k3sconf.ConfigPath + " | the right to start a cluster ends with the run that used it",
		"planned | n3 | create | " + k3sconf.TokenPath,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if w.made != 0 || len(w.nodes["n1"].files) != 0 {
		t.Error("a plan changed something")
	}
	if strings.Contains(text, w.token) {
		t.Error("the plan tells the token")
	}
}

// Cut after every single command and file, however far k3s has come by then: the next
// run makes the same cluster, and never a second one.
func TestPowerCutAnywhere(t *testing.T) {
	for _, slow := range []int{0, 2} {
		whole := newWorld(t)
		slowly(whole, slow)
		if _, err := whole.run(); err != nil {
			t.Fatal(err)
		}
		for cut := 1; cut <= whole.ops; cut++ {
			w := newWorld(t)
			slowly(w, slow)
			w.cutAt = cut
			if _, err := w.run(); !errors.Is(err, errCut) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			w.cutAt = 0
			for range 5 {
				for _, f := range w.nodes {
					f.tick()
				}
			}
			if events, err := w.run(); err != nil {
				t.Fatalf("after a cut at %d (%s): %v\n%s", cut, w.order[cut-1], err, strings.Join(events, "\n"))
			}
			w.converged()
			if w.made != 1 {
				t.Errorf("after a cut at %d (%s): %d clusters", cut, w.order[cut-1], w.made)
			}
		}
	}
}

func slowly(w *world, looks int) {
	for _, f := range w.nodes {
		f.slow = looks
	}
}

// A lost first server joins like any other.
func TestWipedFirst(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.recorded = &identity.Cluster{Environment: "lab", Name: "harbor", CA: w.nodes["n1"].k.CA}
	w.wipe("n1")
	_, err := w.run()
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "n1 holds no data, but etcd still has a member there") || !strings.Contains(diag.HintOf(err), "bootstrap rebuild n1") {
		t.Errorf("with its member in etcd: %v", err)
	}
	if len(w.nodes["n1"].files) != 0 {
		t.Error("something was written all the same")
	}
	w.forget("n1")
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.converged()
	config := w.nodes["n1"].files[k3sconf.ConfigPath]
	if w.made != 1 || strings.Contains(config, "cluster-init") || w.through(config).name != "n2" {
		t.Errorf("%d clusters; n1 has\n%s", w.made, config)
	}
}

func TestAllWiped(t *testing.T) {
	w := newWorld(t)
	w.recorded = &identity.Cluster{Environment: "lab", Name: "harbor", CA: digest.Of([]byte("x"))}
	if _, err := w.run(); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "the ledger knows cluster harbor") || w.made != 0 {
		t.Errorf("%v, %d clusters", err, w.made)
	}
}

func TestSilentNode(t *testing.T) {
	w := newWorld(t)
	w.nodes["n3"].silent = true
	if _, err := w.run(); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "n3 does not answer") || w.made != 0 {
		t.Errorf("%v, %d clusters", err, w.made)
	}
	for _, f := range w.nodes {
		if len(f.files) > 0 {
			t.Errorf("%s has files", f.name)
		}
	}
}

// The next server does not start before the one before votes.
func TestOneByOne(t *testing.T) {
	w := newWorld(t)
	w.nodes["n2"].refuses = func(f *fake) string { f.k.State = "activating"; return "waiting for something" }
	o := w.options()
	looks := 0
	o.Pause = func(context.Context) error {
		if looks++; looks > 20 {
			return errors.New("enough")
		}
		return nil
	}
	r := sequence.Runner{Now: time.Now, On: func(sequence.Event) {}}
	if _, err := r.Run(t.Context(), Steps(o)); err == nil || !strings.Contains(err.Error(), "k3s n2: is a voter of etcd: enough") {
		t.Errorf("%v", err)
	}
	if slices.Contains(w.order, "start n3") || len(w.nodes["n3"].files) > 0 {
		t.Error("n3 was touched while n2 had not joined")
	}
	w.add("n2")
	w.etcd.Members[1].Learner = true
	w.nodes["n2"].refuses = nil
	w.nodes["n2"].k.State = "inactive"
	if err := member.MayJoin(w.etcd, []member.Server{{Name: "n1", Addresses: []string{"10.0.2.15"}}, {Name: "n2", Addresses: []string{"10.0.2.16"}}, {Name: "n3", Addresses: []string{"10.0.2.17"}}}, "n3"); err == nil {
		t.Error("n3 may join while n2 learns")
	}
}

// What k3s says in its journal is told at once, with what to do: its unit is
// "activating" for ever.
func TestCauses(t *testing.T) {
	for line, want := range map[string]string{
		`time="2026-05-01T10:00:00Z" level=info msg="Waiting to retrieve agent configuration; server is not ready: Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag"`: "the cluster rejects the node password of n2: it remembers another machine of that name: Waiting to retrieve",
		`level=fatal msg="starting kubernetes: preparing server: failed to validate server configuration: critical configuration value mismatch between servers: cluster-cidr"`:                                                                                                                                  "k3s on n2 has other cluster-wide flags than the cluster",
		`level=fatal msg="starting kubernetes: preparing server: failed to bootstrap cluster data: https://10.0.2.15:6443/v1-k3s/server-bootstrap: 401 Unauthorized"`:                                                                                                                                            "the cluster does not know the token of n2",
		`level=fatal msg="token CA hash does not match the Cluster CA certificate hash: a != b"`:                                                                                                                                                                                                                 "of another cluster than the token",
		`level=fatal msg="ETCD join failed: duplicate node name found, please use a unique name for this node"`:                                                                                                                                                                                                  "etcd has a member of the name of n2 already",
	} {
		w := newWorld(t)
		w.nodes["n2"].refuses = func(*fake) string { return line }
		_, err := w.run()
		if err == nil || !strings.Contains(err.Error(), want) || diag.HintOf(err) == "" || strings.Contains(diag.HintOf(err), "%NODE%") {
			t.Errorf("%s\n%v, hint %q", line, err, diag.HintOf(err))
		}
		if exit.Of(err) != exit.Failed {
			t.Errorf("exit code %d", exit.Of(err))
		}
	}
}

// What was mended since is not told again: k3s goes on by itself, and the next run
// waits for it.
func TestMendedSince(t *testing.T) {
	w := newWorld(t)
	f := w.nodes["n2"]
	f.refuses = func(*fake) string { return "Node password rejected" }
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "node password") {
		t.Fatal(err)
	}
	f.refuses, f.slow = nil, 2
	if events, err := w.run(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(events, "\n"))
	}
	w.converged()
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name        string
		u           unit
		want        string
		final, none bool
	}{
		{name: "nothing", u: unit{active: "activating", lines: []string{"level=info msg=\"Starting\""}}, none: true},
		{name: "learners", u: unit{lines: []string{"etcdserver: too many learner members in cluster"}}, want: "another one is learning"},
		{name: "fatal once", u: unit{active: "activating", restarts: 1, lines: []string{`level=fatal msg="starting kubernetes: no"`}}, want: "starts again: starting kubernetes: no"},
		{name: "fatal again and again", u: unit{active: "activating", restarts: 3, lines: []string{`level=fatal msg="flag provided but not defined: -x"`}}, want: "ends again and again on n2", final: true},
		{name: "failed", u: unit{active: "failed", lines: []string{`level=fatal msg="no"`}}, want: "k3s has failed on n2", final: true},
		{name: "the surest first", u: unit{active: "failed", lines: []string{"Node password rejected", `level=fatal msg="no"`}}, want: "node password", final: true},
	} {
		got, found := find(c.u, "n2")
		if found == c.none || c.final != got.final || !strings.Contains(got.what, c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, found)
		}
	}
}

func TestParseUnit(t *testing.T) {
	u := parseUnit("ActiveState=inactive\nResult=exit-code\nConditionResult=no\nNRestarts=4\n\nline one\nline two\n")
	if !u.skipped || u.restarts != 4 || u.result != "exit-code" || len(u.lines) != 2 {
		t.Errorf("%+v", u)
	}
	if parseUnit("ActiveState=inactive\nConditionResult=no\nJob=77\n\n").skipped {
		t.Error("a unit that is about to start was not passed over")
	}
	if parseUnit("ActiveState=active\nConditionResult=no\n\n").skipped {
		t.Error("a unit that runs was not passed over")
	}
}

// A change that a living cluster can take is made on one server after the other; one
// that it cannot take is refused before anything is touched.
func TestChangedProfile(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.cluster.K3s.Config = map[string]string{"debug": "true"}
	w.order = nil
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.converged()
	if n := strings.Count(strings.Join(w.order, "\n"), "start "); n != 3 || w.made != 1 {
		t.Errorf("%d starts, %d clusters", n, w.made)
	}
	w.cluster.Network.ClusterDomain = "other.local"
	w.order = nil
	_, err := w.run()
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), `cluster-domain is "cluster.local" on n1, "other.local" on paper`) {
		t.Errorf("%v", err)
	}
	if strings.Contains(strings.Join(w.order, "\n"), "put ") {
		t.Errorf("%q", w.order)
	}
}

func TestDropIns(t *testing.T) {
	w := newWorld(t)
	w.nodes["n2"].files[k3sconf.DropInDir+"/90-x.yaml"] = "disable: [metrics-server]\n"
	if _, err := w.run(); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "drop-ins of n2: /etc/rancher/k3s/config.yaml.d/90-x.yaml:1:1") || w.made != 0 {
		t.Errorf("%v", err)
	}
	w.nodes["n2"].files[k3sconf.DropInDir+"/90-x.yaml"] = "disable+: [metrics-server]\n"
	if _, err := w.run(); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "the servers' k3s configurations differ") || w.made != 0 {
		t.Errorf("on one server only: %v", err)
	}
}

func TestWrongToken(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.token = "another-token"
	if _, err := w.run(); exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "the token in the secrets is not the one that n1 runs with") {
		t.Errorf("%v", err)
	}
}

// A member whose k3s was stopped is started again; one that is no member any more is
// no reason to start anything else.
func TestStoppedMember(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.nodes["n2"].k.State = "inactive"
	events, err := w.run()
	if err != nil || !strings.Contains(strings.Join(events, "\n"), "done n2 is a voter of etcd") {
		t.Errorf("%v\n%s", err, strings.Join(events, "\n"))
	}
	w.converged()
}

func TestOneServer(t *testing.T) {
	w := newWorld(t)
	w.cluster.Nodes = w.cluster.Nodes[:1]
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.converged("n1")
	if got := w.through(w.nodes["n1"].files[k3sconf.ConfigPath]); got == nil || got.name != "n1" || w.made != 1 {
		t.Errorf("%d clusters", w.made)
	}
}

func TestAgent(t *testing.T) {
	w := newWorld(t)
	w.cluster.Nodes[2].Role = cluster.RoleAgent
	w.nodes["n3"].k.Unit = "k3s-agent.service"
	w.nodes["n3"].refuses = func(f *fake) string { // an agent has no etcd
		f.k.State, f.k.Joined = "active", true
		return "joined"
	}
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.converged("n1", "n2")
	files := w.nodes["n3"].files
	if files[k3sconf.AgentMark] == "" || !strings.Contains(files[k3sconf.ConfigPath], "server: ") || strings.Contains(files[k3sconf.ConfigPath], "cluster-cidr") {
		t.Errorf("%v", files)
	}
	if events, err := w.run(); err != nil || strings.Contains(strings.Join(events, "\n"), "started") {
		t.Errorf("the second run: %v\n%s", err, strings.Join(events, "\n"))
	}
}
