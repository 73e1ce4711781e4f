package canary

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/profilefile"
)

// trouble is one reason for which up has to stop before anything is changed.
type trouble struct {
	name  string
	facts func(all []facts.Facts)             // what the nodes say
	lab   func(t *testing.T, l *lab) []string // what is different here; returns more flags
	want  string                              // of the error
	code  int
}

func troubles() []trouble {
	return []trouble{
		{name: "no age key", want: "reading age key", code: 1, lab: func(*testing.T, *lab) []string { return []string{"--age-key", "none"} }},
		{name: "key that does not open them", want: "no age key at hand opens it", code: 1, lab: stranger},
		{name: "design only", want: "design-only", code: 3, lab: replace("profiles/lab.yaml", "status: active", "status: design-only")},
		{name: "ranges overlap", want: "overlap", code: 2, lab: replace("profiles/base.yaml", "podCIDR: 10.42.0.0/16", "podCIDR: 10.0.0.0/8")},
		{name: "git cannot be reached", want: "cannot be reached", code: 1, lab: replace("profiles/lab.yaml", "sources:", "flux:\n  url: https://localhost:1/fleet\n  path: clusters/lab\n\nsources:")},
		{name: "other address", want: "10.0.2.99", code: 3, facts: func(all []facts.Facts) { all[1].Interfaces[0].Addresses = []string{"10.0.2.99/24"} }},
		{name: "clock that nobody keeps", want: "clock", code: 3, facts: func(all []facts.Facts) { all[2].Clock.Synchronised = false }},
		{name: "clock that is wrong", want: "clock", code: 3, lab: wrongClock},
		{name: "two nodes with one identity", want: "n1", code: 3, facts: func(all []facts.Facts) { all[1].MachineID = all[0].MachineID }},
		{name: "cluster of somebody else", want: "holds data of a cluster", code: 3, facts: func(all []facts.Facts) {
			all[0].K3s.Etcd, all[0].K3s.Config, all[0].K3s.CA = true, true, digest.Of([]byte("other"))
		}},
		{name: "drop-in that undoes ours", want: "disable", code: 3, lab: dropIn, facts: func(all []facts.Facts) { all[0].K3s.DropIns = []string{"90-mine.yaml"} }},
	}
}

// stranger has a key of somebody else.
func stranger(t *testing.T, l *lab) []string {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, "stranger.txt")
	if err := os.WriteFile(path, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--age-key", path}
}

// replace changes a file until the case is over.
func replace(name, old, new string) func(*testing.T, *lab) []string {
	return func(t *testing.T, l *lab) []string {
		path := filepath.Join(l.dir, name)
		before, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(before, []byte(old)) {
			t.Fatalf("%s has no %q: %v", name, old, err)
		}
		write := func(text []byte) {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(bytes.Replace(before, []byte(old), []byte(new), 1))
		t.Cleanup(func() { write(before) })
		return nil
	}
}

func wrongClock(t *testing.T, l *lab) []string {
	n := l.nodes["n2"]
	n.Program(t, "date", `exec /bin/date -d "10 seconds" "$@"`)
	t.Cleanup(func() { os.Remove(n.Path("/usr/local/bin/date")) })
	return nil
}

func dropIn(t *testing.T, l *lab) []string {
	n := l.nodes["n1"]
	const path = "/etc/rancher/k3s/config.yaml.d/90-mine.yaml"
	n.Write(t, path, "disable: [metrics-server]\n", 0o600)
	t.Cleanup(func() { os.RemoveAll(n.Path("/etc/rancher")) })
	return nil
}

// Each trouble ends up with its reason, and no node has been changed.
func TestStopsBeforeAnythingIsChanged(t *testing.T) {
	l := open(t)
	for node := range l.nodes {
		if err := l.bootstrap(t, "trust", node, "--fingerprint", "SHA256:").Run(); err != nil {
			t.Fatalf("%v\n%s", err, l.said.String())
		}
		l.nodes[node].Program(t, "systemctl", `echo "$@" >>/run/called; exit 0`)
	}
	p, err := profilefile.Load(l.profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range troubles() {
		t.Run(c.name, func(t *testing.T) {
			l.tell(t, p.Cluster, c.facts)
			more := []string{"--build", images(t), "--key", key(t), "--age-key", l.key}
			if c.lab != nil {
				more = append(more, c.lab(t, l)...)
			}
			l.said.Reset()
			up := l.bootstrap(t, "up", more...)
			err := up.Run()
			said := l.said.String()
			if _, ended := err.(*exec.ExitError); !ended || up.ProcessState.ExitCode() != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", up.ProcessState.ExitCode(), c.code, c.want, said)
			}
			if !strings.Contains(said, "hint:") {
				t.Errorf("no hint:\n%s", said)
			}
			l.untouched(t)
		})
	}
}

// tell lets the nodes say what they are, with a change.
func (l *lab) tell(t *testing.T, c cluster.Cluster, change func([]facts.Facts)) {
	var all []facts.Facts
	for i, n := range c.Nodes {
		all = append(all, says(c, n, i))
	}
	if change != nil {
		change(all)
	}
	for i, n := range c.Nodes {
		text, err := json.Marshal(all[i])
		if err != nil {
			t.Fatal(err)
		}
		l.nodes[n.Name].Write(t, "/etc/facts.json", string(text), 0o644)
	}
}

// untouched looks for what up would have left behind.
func (l *lab) untouched(t *testing.T) {
	t.Helper()
	for name, n := range l.nodes {
		for _, path := range []string{"/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/token"} {
			if _, err := os.Stat(n.Path(path)); err == nil {
				t.Errorf("%s has got %s", name, path)
			}
		}
		called, _ := os.ReadFile(n.Path("/run/called"))
		for line := range strings.Lines(string(called)) {
			if verb, _, _ := strings.Cut(line, " "); verb == "start" || verb == "restart" || verb == "enable" || verb == "stop" {
				t.Errorf("on %s: systemctl %s", name, line)
			}
		}
	}
}
