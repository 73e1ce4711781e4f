package survey

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/ssh"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/vm-test/sshnode"
)

// answers is slipway-node as far as it is asked here; its own tests are beside it.
const answers = `echo x >>/run/asked
cat <<END
{"format":"slipway-facts/1","node":"n1","k3s":{"dropIns":["90-x.yaml","gone.yaml"],"state":"inactive"}}
END`

func reach(t *testing.T, n *sshnode.Node) *ssh.Host {
	t.Helper()
	l, err := ssh.Open("", []string{n.KeyFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := ssh.New(ssh.Options{Node: "n1", Address: n.Address, User: sshnode.Operator, HostKeys: []string{n.HostKey}, Login: l})
	t.Cleanup(func() { h.Close() })
	return h
}

func asked(t *testing.T, n *sshnode.Node) int {
	t.Helper()
	data, err := os.ReadFile(n.Path("/run/asked"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "x")
}

func TestAsk(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	n.Program(t, "slipway-node", answers)
	n.Write(t, "/etc/rancher/k3s/config.yaml.d/90-x.yaml", "debug: true\n", 0o600)
	s := New(map[string]Node{"n1": reach(t, n)}, time.Now)
	seen := s.Ask(t.Context(), "n1", "n9")
	if seen[0].Err != nil || seen[0].Facts.Node != "n1" || string(seen[0].DropIns["90-x.yaml"]) != "debug: true\n" || len(seen[0].DropIns) != 1 {
		t.Errorf("%+v", seen[0])
	}
	if seen[0].Off() != 0 || seen[0].Ahead < seen[0].Behind {
		t.Errorf("the same clock: between %s and %s", seen[0].Behind, seen[0].Ahead)
	}
	if seen[1].Err == nil || seen[1].Node != "n9" {
		t.Errorf("nobody: %+v", seen[1])
	}
	s.Ask(t.Context(), "n1")
	if asked(t, n) != 1 {
		t.Error("what is remembered was asked again")
	}
	s.Forget("n1")
	s.Ask(t.Context(), "n1")
	if asked(t, n) != 2 {
		t.Error("what was forgotten was not asked again")
	}
}

// A clock that is wrong by an hour is seen, however long the answer takes.
func TestClock(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	n.Program(t, "slipway-node", answers)
	n.Program(t, "date", `echo $(($(/bin/date +%s) - 3600)).5`)
	seen := New(map[string]Node{"n1": reach(t, n)}, time.Now).Ask(t.Context(), "n1")[0]
	if off := seen.Off(); seen.Err != nil || off > -59*time.Minute || off < -61*time.Minute {
		t.Errorf("%s, %v", off, seen.Err)
	}
	n.Program(t, "date", "echo soon")
	s := New(map[string]Node{"n1": reach(t, n)}, time.Now)
	if err := s.Ask(t.Context(), "n1")[0].Err; err == nil || !strings.Contains(err.Error(), "its clock says") {
		t.Errorf("%v", err)
	}
}

func TestNoNodeOfOurs(t *testing.T) {
	n := sshnode.Start(t, sshnode.Options{})
	s := New(map[string]Node{"n1": reach(t, n)}, time.Now)
	if err := s.Ask(t.Context(), "n1")[0].Err; err == nil || !strings.Contains(diag.HintOf(err), "no node of Slipway") {
		t.Errorf("%v, hint %q", err, diag.HintOf(err))
	}
	n.Program(t, "slipway-node", "echo '{}'")
	if err := s.Ask(t.Context(), "n1")[0].Err; err == nil || !strings.Contains(err.Error(), "n1: ") || diag.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}
