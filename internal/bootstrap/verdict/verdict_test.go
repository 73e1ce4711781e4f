package verdict

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/bootstrap/volume/volumetest"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/run"
)

type obj = map[string]any

// sight is a healthy cluster of three servers, in which n1 is dead.
func sight() Sight {
	s := Sight{Cluster: cluster.Cluster{Environment: "lab", Status: cluster.StatusActive}, Run: "run-1", Unreachable: errors.New("no route to host")}
	s.Members.Health = map[member.ID]member.Health{}
	for i := 1; i <= 3; i++ {
		name, address := fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.2.%d", 14+i)
		s.Cluster.Nodes = append(s.Cluster.Nodes, cluster.Node{Name: name, Role: cluster.RoleServer, Interfaces: []cluster.Interface{{Addresses: []netip.Prefix{netip.MustParsePrefix(address + "/24")}}}})
		s.Nodes = append(s.Nodes, kubeNode(name, i != 1, address))
		m := member.Member{ID: member.ID(i), Name: name + "-1f0c9a31", PeerURLs: []string{"https://" + address + ":2380"}}
		s.Members.Members, s.Members.Health[m.ID] = append(s.Members.Members, m), member.Health{Answers: i != 1, Healthy: i != 1, Why: "connection refused"}
	}
	s.Node = s.Cluster.Nodes[0]
	return s
}

func kubeNode(name string, ready bool, address string) obj {
	status, message := "True", "kubelet is posting ready status"
	if !ready {
		status, message = "Unknown", "Kubelet stopped posting node status."
	}
	return obj{
		"apiVersion": "v1", "kind": "Node", "metadata": obj{"name": name}, "spec": obj{},
		"status": obj{"conditions": []any{obj{"type": "Ready", "status": status, "message": message}}, "addresses": []any{obj{"type": "InternalIP", "address": address}}},
	}
}

// alive makes n1 a living node again.
func lives(s *Sight) {
	s.Nodes[0], s.Unreachable = kubeNode("n1", true, "10.0.2.15"), nil
	s.Members.Health[1] = member.Health{Answers: true, Healthy: true}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Sight)
		want   []string // every one must be said; none: it may be rebuilt
		hint   string
	}{
		{name: "a dead node", change: func(*Sight) {}},
		{name: "a dead node that the cluster has forgotten", change: func(s *Sight) {
			s.Nodes, s.Members.Members = s.Nodes[1:], s.Members.Members[1:]
		}},
		{name: "a living one that is drained", change: func(s *Sight) { lives(s); s.Drain = true }},
		{name: "a living one that is cordoned", change: func(s *Sight) { lives(s); s.Nodes[0]["spec"] = obj{"unschedulable": true} }},
		{name: "an agent", change: func(s *Sight) {
			s.Cluster.Nodes[0].Role, s.Node.Role = cluster.RoleAgent, cluster.RoleAgent
			s.Members = member.State{} // is not even asked
		}},
		{name: "our own run goes on", change: func(s *Sight) { s.Rebuilds = []run.Record{{ID: "run-1", Subject: "n1"}} }},
		{name: "being imaged by ourselves", change: func(s *Sight) { s.Machine = Machine{State: life.StateImaging, Arming: "run-1.1", Live: true} }},

		{name: "design only", change: func(s *Sight) { s.Cluster.Status = cluster.StatusDesignOnly }, want: []string{"the profile of lab is design-only: no node is rebuilt"}, hint: "set status: active"},
		{name: "alive", change: lives, want: []string{"n1 is alive and takes pods"}, hint: "--drain"},
		{name: "alive and out of reach", change: func(s *Sight) { lives(s); s.Unreachable = errors.New("no route to host") }, want: []string{"n1 is alive, but SSH does not reach it, so that it could not be stopped: no route to host"}, hint: "switch it off"},
		{
			name: "another is rebuilt", hint: "bootstrap rebuild n3 --abandon",
			change: func(s *Sight) {
				s.Rebuilds = []run.Record{{ID: "run-0", Subject: "n3", Owner: "ann on desk", Started: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}}
			},
			want: []string{"another node is being rebuilt: n3, since 2026-05-01T10:00:00Z, by ann on desk"},
		},
		{name: "another is down", change: func(s *Sight) { s.Nodes[2] = kubeNode("n3", false, "10.0.2.17") }, want: []string{"another node is down: n3 is not Ready: Kubelet stopped posting node status."}, hint: "mend it first"},
		{name: "another is not there", change: func(s *Sight) { s.Nodes = s.Nodes[:2] }, want: []string{"another node is down: n3 is not in the cluster"}},
		{name: "both others", change: func(s *Sight) { s.Nodes = nil }, want: []string{"n2 is not in the cluster; n3 is not in the cluster"}},
		{
			name: "another member is unhealthy", hint: "mend n2 first",
			change: func(s *Sight) {
				lives(s)
				s.Drain = true
				s.Members.Health[2] = member.Health{Why: "no answer in time"}
			},
			want: []string{"quorum would be lost: etcd has 3 voters; without n1 there are 2, of which 2 have to agree, but only n3 is healthy; n2: no answer in time"},
		},
		{
			name: "no quorum", hint: "restore a snapshot",
			change: func(s *Sight) { s.Members.Health[2] = member.Health{Why: "no answer in time"} },
			want:   []string{"etcd has no quorum: of its 3 voters 2 have to agree, but only n3 answers"},
		},
		{
			name: "a volume's last replica", hint: "wait until Longhorn",
			change: func(s *Sight) {
				s.Storage = volumetest.Storage([]obj{
					volumetest.Volume("a", "detached", 2), volumetest.Replica("a", "n1", nil), volumetest.Replica("a", "n2", volumetest.Failed()),
					volumetest.Volume("b", "attached", 1), volumetest.Replica("b", "n1", nil),
				})
			},
			want: []string{"data would be lost with n1, of 2 volumes:", "\n    a (claim data/a): its last healthy replica is on n1; the one on n2 has failed", "\n    b (claim data/b): it has one replica, on n1"},
		},
		{
			name: "a volume's other replica is on a node that is down",
			change: func(s *Sight) {
				s.Nodes[1] = kubeNode("n2", false, "10.0.2.16")
				s.Storage = volumetest.Storage([]obj{volumetest.Volume("a", "detached", 2), volumetest.Replica("a", "n1", nil), volumetest.Replica("a", "n2", nil)})
			},
			want: []string{"another node is down: n2", "its last healthy replica is on n1; n2 is down"},
		},
		{name: "pxed would not", change: func(s *Sight) { s.Machine = Machine{Refused: "two machines are n1", Hint: "pxed forget"} }, want: []string{"pxed would not image the machine of n1: two machines are n1"}, hint: "pxed forget"},
		{name: "somebody images it", change: func(s *Sight) { s.Machine = Machine{State: life.StateImaging, Arming: "by hand"} }, want: []string{"being imaged right now, for somebody else"}, hint: "pxed disarm n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sight()
			c.change(&s)
			err := Judge(s)
			if len(c.want) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v\ndoes not say %q", err, w)
				}
			}
			if exit.Of(err) != exit.Refused || !strings.Contains(diag.HintOf(err), c.hint) {
				t.Errorf("exit code %d, hint %q, not %q", exit.Of(err), diag.HintOf(err), c.hint)
			}
		})
	}
}

// Whoever reads it at night wants all reasons at once.
func TestAllReasons(t *testing.T) {
	s := sight()
	lives(&s)
	s.Cluster.Status = cluster.StatusDesignOnly
	s.Nodes[2] = kubeNode("n3", false, "10.0.2.17")
	s.Storage = volumetest.Storage([]obj{volumetest.Volume("b", "attached", 1), volumetest.Replica("b", "n1", nil)})
	err := Judge(s)
	want := "n1 may not be rebuilt, for 4 reasons:\n  - the profile of lab is design-only: no node is rebuilt\n  - another node is down: n3 is not Ready: Kubelet stopped posting node status.\n" +
		"  - data would be lost with n1, of 1 volume:\n    b (claim data/b): it has one replica, on n1\n  - n1 is alive and takes pods"
	if err == nil || err.Error() != want || exit.Of(err) != exit.Refused || strings.Count(diag.HintOf(err), ";") < 3 {
		t.Errorf("%v\nhint %q", err, diag.HintOf(err))
	}
}

func TestServers(t *testing.T) {
	s := sight()
	s.Cluster.Nodes[1].Interfaces = []cluster.Interface{{DHCP: true}}
	s.Cluster.Nodes[2].Role = cluster.RoleAgent
	var got []string
	for _, v := range Servers(s.Cluster, s.Nodes) {
		got = append(got, v.Name+" "+strings.Join(v.Addresses, ","))
	}
	if want := []string{"n1 10.0.2.15", "n2 10.0.2.16"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestArmings(t *testing.T) {
	for _, c := range []struct {
		m     Machine
		last  string
		id    string
		alive bool
	}{
		{Machine{}, "", "r.1", false},
		{Machine{Arming: "by hand", Live: true}, "", "r.1", false},
		{Machine{Arming: "r.1", Live: true}, "r.1", "r.1", true},
		{Machine{Arming: "r.1", End: life.EndFailed}, "r.1", "r.2", false},
		{Machine{Arming: "by hand", End: life.EndUsed}, "r.3", "r.4", false},
		{Machine{Arming: "r.2"}, "", "r.3", false}, // the ledger was lost in between
		{Machine{Arming: "rr.7", Live: true}, "", "r.1", false},
	} {
		if id, alive := c.m.Next("r", c.last); id != c.id || alive != c.alive {
			t.Errorf("%+v after %q: %s, %v", c.m, c.last, id, alive)
		}
	}
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	done := Machine{State: life.StateInstalled, End: life.EndUsed, Installed: at}
	failed := done
	failed.End = life.EndFailed
	if !done.Done(time.Time{}) || !done.Done(at.Add(-time.Second)) || done.Done(at) || failed.Done(time.Time{}) || (Machine{}).Done(time.Time{}) {
		t.Error("whether it was installed is told wrongly")
	}
}
