package servers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/k3sconf"
	"github.com/slipway/slipway/internal/sequence"
)

// The bar of the pitfalls: a rejected node password is told within this time.
const bar = 60 * time.Second

func TestServers(t *testing.T) {
	l := open(t)

	t.Log("== a first run, cut off when the second server was told to start")
	_, err := l.up(func(e sequence.Event) bool {
		return e.Node == "n2" && e.Kind == sequence.Waiting && strings.HasPrefix(e.Words, "starting ")
	})
	if err == nil {
		t.Fatal("the run was not cut off")
	}
	t.Log("== the next one goes on")
	if _, err := l.up(nil); err != nil {
		l.journals()
		t.Fatal(err)
	}
	ca := l.formed()
	uid := l.uid()
	if did, err := l.up(nil); did != 0 || err != nil {
		t.Errorf("a run with nothing to do did %d, %v", did, err)
	}
	l.registered()

	t.Log("== the first server is lost with its disk")
	l.recorded = &identity.Cluster{Environment: "lab", Name: "harbor", CA: ca}
	l.install("n1")
	l.refused("n1 holds no data, but etcd still has a member there", "bootstrap rebuild n1")

	t.Log("== the node and its member are removed, and it joins")
	if status, text := l.api(http.MethodDelete, "/api/v1/nodes/n1"); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	l.until("the node is gone", func() bool {
		status, _ := l.api(http.MethodGet, "/api/v1/nodes/n1")
		return status == http.StatusNotFound
	})
	l.until("its member is gone", func() bool { return !strings.Contains(l.voters("n2"), "n1") })
	if _, err := l.up(nil); err != nil {
		l.journals()
		t.Fatal(err)
	}
	if now := l.formed(); now != ca || l.uid() != uid {
		t.Errorf("the cluster was %s %s and is %s %s", ca.Short(), uid, now.Short(), l.uid())
	}
	config := l.run("n1", "cat "+k3sconf.ConfigPath)
	if strings.Contains(config, "cluster-init") || !strings.Contains(config, "server:") {
		t.Errorf("the first server was made anew with\n%s", config)
	}

	l.agent()

	t.Log("== all are lost")
	for _, n := range l.cluster.Nodes {
		l.install(n.Name)
	}
	l.refused("the ledger knows cluster harbor", "--forget")
	for _, name := range []string{"n1", "n2", "n3"} {
		if got := l.run(name, "ls -A /etc/rancher /var/lib/rancher 2>/dev/null || true"); got != "" {
			t.Errorf("%s was touched:\n%s", name, got)
		}
	}
	if strings.Contains(l.said.String(), token) {
		t.Error("the token was told")
	}
}

// formed wants three voters and one cluster, and nobody who could start another.
func (l *lab) formed() (ca identityCA) {
	l.t.Helper()
	if got := l.voters("n1"); got != "n1 n2 n3" {
		l.t.Fatalf("voters %s", got)
	}
	l.survey.Forget("n1", "n2", "n3")
	for _, s := range l.survey.Ask(l.t.Context(), "n1", "n2", "n3") {
		k := s.Facts.K3s
		if s.Err != nil || k.Init || !k.Config || k.State != "active" || !k.Joined || !ca.IsZero() && k.CA != ca {
			l.t.Errorf("%s: %+v, %v", s.Node, k, s.Err)
		}
		ca = k.CA
		if got := l.run(s.Node, "stat -c %a "+k3sconf.ConfigPath+" "+k3sconf.TokenPath); got != "600\n600\n" {
			l.t.Errorf("%s: modes %q", s.Node, got)
		}
		if got := l.run(s.Node, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(got, token) {
			l.t.Errorf("%s: the token is in the arguments of a program", s.Node)
		}
	}
	return ca
}

type identityCA = digest.Digest

func (l *lab) voters(via string) string {
	l.t.Helper()
	state, err := l.members(l.t.Context(), via)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, m := range state.Voters() {
		name, _, _ := strings.Cut(m.Name, "-")
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (l *lab) uid() string {
	l.t.Helper()
	status, text := l.api(http.MethodGet, "/api/v1/namespaces/kube-system")
	var o struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(text), &o); status != http.StatusOK || err != nil || o.Metadata.UID == "" {
		l.t.Fatalf("%d %s", status, text)
	}
	return o.Metadata.UID
}

// registered waits until every node is known to the cluster. None is Ready: there is
// no network.
func (l *lab) registered() {
	l.t.Helper()
	for _, n := range l.cluster.Nodes {
		l.until(n.Name+" is registered", func() bool {
			status, _ := l.api(http.MethodGet, "/api/v1/nodes/"+n.Name)
			return status == http.StatusOK
		})
	}
	info, err := os.Stat(l.kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		l.t.Errorf("kubeconfig: %v, %v", info, err)
	}
}

// agent loses the agent, which comes back with its name and another password.
func (l *lab) agent() {
	l.t.Helper()
	l.t.Log("== the agent is installed anew, and the cluster remembers the old one")
	l.install("n4")
	_, err := l.up(nil)
	told := time.Now()
	if err == nil || !strings.Contains(err.Error(), "rejects the node password of n4") || !strings.Contains(diag.HintOf(err), "n4.node-password.k3s") {
		l.journals()
		l.t.Fatalf("a node that passes for another: %v", err)
	}
	took := told.Sub(l.rejected("n4"))
	l.t.Logf("told %s after it was rejected: %v", took.Round(time.Millisecond), err)
	if took > bar {
		l.t.Errorf("told after %s, more than %s", took, bar)
	}
	if status, text := l.api(http.MethodDelete, "/api/v1/nodes/n4"); status != http.StatusOK {
		l.t.Fatalf("%d %s", status, text)
	}
	l.until("the node is gone", func() bool {
		status, _ := l.api(http.MethodGet, "/api/v1/nodes/n4")
		return status == http.StatusNotFound
	})
	if _, err := l.up(nil); err != nil {
		l.journals()
		l.t.Fatal(err)
	}
	l.registered()
}

func (l *lab) refused(want, hint string) {
	l.t.Helper()
	did, err := l.up(nil)
	if did != 0 || exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), want) || !strings.Contains(diag.HintOf(err), hint) {
		l.t.Errorf("did %d, %v (hint %q)", did, err, diag.HintOf(err))
	}
	l.t.Logf("refused: %v", err)
}

// rejected is when the cluster first rejected a node's password.
func (l *lab) rejected(name string) time.Time {
	l.t.Helper()
	line := l.run(name, "grep -h -m 1 'Node password rejected' /run/units/*.log")
	_, text, _ := strings.Cut(line, " time=")
	text, _, _ = strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		l.t.Fatalf("%q: %v", line, err)
	}
	return at
}

// journals shows what k3s said, for a test that fails.
func (l *lab) journals() {
	for name := range l.hosts {
		out, err := l.hosts[name].Run(l.t.Context(), "tail -n 40 /run/units/*.log", nil)
		l.t.Log(fmt.Sprintf("%s, %v:\n%s", name, err, out))
	}
}
