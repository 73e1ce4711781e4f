package member

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

func servers(n int) []Server {
	var out []Server
	for i := range n {
		out = append(out, Server{Name: fmt.Sprintf("n%d", i+1), Addresses: []string{address(i + 1)}})
	}
	return out
}

func address(n int) string { return fmt.Sprintf("10.0.2.%d", 14+n) }

// voter is the member of a node as k3s makes it.
func voter(n int) Member {
	return Member{
		ID: ID(0xa0 + n), Name: fmt.Sprintf("n%d-1f0c9a3%d", n, n),
		PeerURLs: []string{"https://" + address(n) + ":2380"}, ClientURLs: []string{"https://" + address(n) + ":2379"},
	}
}

func learner(n int) Member {
	m := voter(n)
	m.ID, m.Learner = ID(0xb0+n), true
	return m
}

// state has n voters, of which those in dead do not answer.
func state(n int, dead ...int) State {
	s := State{Cluster: 7, Health: map[ID]Health{}}
	for i := 1; i <= n; i++ {
		s.add(voter(i), !slices.Contains(dead, i))
	}
	return s
}

func (s *State) add(m Member, healthy bool) {
	h := Health{Answers: healthy, Healthy: healthy}
	if !healthy {
		h.Why = "connection refused"
	}
	s.Members, s.Health[m.ID] = append(s.Members, m), h
}

func with(s State, m Member, healthy bool) State {
	s.add(m, healthy)
	return s
}

func TestRemove(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   State
		target  string
		voter   ID   // 0: none
		learner []ID // in order
		refusal string
		hint    string
	}{
		{name: "the dead one of three", state: state(3, 1), target: "n1", voter: 0xa1},
		{name: "the living one of three", state: state(3), target: "n2", voter: 0xa2},
		{name: "removed already", state: state(3, 1).drop(1), target: "n1"},
		{name: "a learner of its own at its address", state: with(state(3, 1).drop(1), learner(1), false), target: "n1", learner: []ID{0xb1}},
		{name: "an orphan learner goes first", state: with(state(3, 1), Member{ID: 9, Learner: true, PeerURLs: []string{"https://10.0.2.99:2380"}}, false), target: "n1", voter: 0xa1, learner: []ID{9}},
		{
			name: "a stranger is joining", state: with(state(3, 1), Member{ID: 9, Name: "x-1f0c9a31", Learner: true, PeerURLs: []string{"https://10.0.2.99:2380"}}, true), target: "n1",
			refusal: "a server that is in no profile is joining etcd right now: x-1f0c9a31 (https://10.0.2.99:2380)", hint: "add its node to the profile",
		},
		{
			name: "what is left of a node that has no place any more", state: with(state(4), Member{ID: 9, Name: "x-1f0c9a31", PeerURLs: []string{"https://10.0.2.99:2380"}}, false), target: "n1",
			refusal: "another member of etcd is unhealthy: x-1f0c9a31", hint: "when it is gone for good, etcdctl member remove 9",
		},
		{name: "a voter that never started", state: with(state(3, 1).drop(1), Member{ID: 8, PeerURLs: voter(1).PeerURLs}, false), target: "n1", voter: 8},
		{
			name: "two of three are dead", state: state(3, 1, 2), target: "n1",
			refusal: "etcd has no quorum: of its 3 voters 2 have to agree, but only n3 answers; n1: connection refused; n2: connection refused; nobody can be removed",
			hint:    "bring another of them back first",
		},
		{
			name: "two answer and do not reach each other", target: "n1",
			state:   State{Members: state(3).Members, Health: map[ID]Health{0xa2: {Answers: true, Why: "it has no leader"}, 0xa3: {Answers: true, Why: "it has no leader"}}},
			refusal: "2 have to agree, but they do not, although n2 and n3 answer; n1: it could not be asked; n2: it has no leader; n3: it has no leader",
		},
		{
			name: "all are dead", state: state(3, 1, 2, 3), target: "n1",
			refusal: "etcd has no quorum: of its 3 voters 2 have to agree, but none answers",
		},
		{
			name: "the other one of three is unhealthy", state: state(3, 2), target: "n1",
			refusal: "quorum would be lost: etcd has 3 voters; without n1 there are 2, of which 2 have to agree, but only n3 is healthy; n2: connection refused",
			hint:    "mend n2 first",
		},
		{
			name: "another one of five is unhealthy", state: state(5, 4), target: "n1",
			refusal: "another member of etcd is unhealthy: n4: connection refused", hint: "mend n4 first",
		},
		{name: "dead and another dead of five", state: state(5, 1, 4), target: "n1", refusal: "another member of etcd is unhealthy: n4: connection refused"},
		{name: "one of two, dead", state: state(2, 1), target: "n1", refusal: "of its 2 voters 2 have to agree, but only n2 answers"},
		{name: "one of two, alive", state: state(2), target: "n1", voter: 0xa1},
		{name: "the only one", state: state(1), target: "n1", refusal: "n1 is the only voter of etcd: with it the cluster's data would be gone", hint: "add servers"},
		{
			name: "another one is joining", state: with(state(3, 1).drop(3), learner(3), true), target: "n1",
			refusal: "etcd has no quorum", // one of two voters is dead
		},
		{
			name: "another one is joining, quorum holds", state: with(state(4).drop(4), learner(4), true), target: "n1",
			refusal: "n4 is joining etcd right now: its member does not vote yet (it answers)", hint: "rebuild n4 first",
		},
		{
			name: "a voter that started under no name elsewhere", state: with(state(3), Member{ID: 8, PeerURLs: []string{"https://10.0.2.99:2380"}}, true), target: "n1",
			refusal: "another member of etcd is unhealthy: a member that never started (https://10.0.2.99:2380): it has never started",
		},
		{
			name: "its name at another address", state: with(state(3, 1).drop(1), Member{ID: 8, Name: "n1-1f0c9a31", PeerURLs: []string{"https://10.0.2.99:2380"}}, true), target: "n1",
			refusal: "carries the name of n1, but is not at any of its addresses (10.0.2.15)",
		},
		{
			name: "another name at its address", state: with(state(3, 1).drop(1), Member{ID: 8, Name: "n2-1f0c9a31", PeerURLs: voter(1).PeerURLs}, true), target: "n1",
			refusal: "is at the address of n1, but carries the name of n2",
		},
		{
			name: "two voters at its address", state: with(state(3), Member{ID: 8, Name: "n1-1f0c9a99", PeerURLs: []string{"https://10.0.2.15:12380"}}, true), target: "n1",
			refusal: "two voters of etcd are at the addresses of n1",
		},
		{name: "a list that nobody vouches for", state: State{Members: state(3).Members, Health: state(3).Health, Stale: true}, target: "n1", refusal: "no quorum of etcd has answered"},
		{name: "no list", target: "n1", refusal: "etcd lists no voters"},
		{name: "an agent", state: state(3), target: "w1", refusal: "w1 is no server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Remove(c.state, servers(5), c.target)
			if c.refusal != "" {
				checkRefusal(t, err, c.refusal, c.hint)
				return
			}
			var learners []ID
			for _, m := range got.Learners {
				learners = append(learners, m.ID)
			}
			var voter ID
			if got.Voter != nil {
				voter = got.Voter.ID
			}
			if err != nil || voter != c.voter || !slices.Equal(learners, c.learner) {
				t.Errorf("voter %s, learners %v, %v; want %s, %v", voter, learners, err, c.voter, c.learner)
			}
		})
	}
}

func checkRefusal(t *testing.T, err error, want, hint string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.HintOf(err), hint) {
		t.Errorf("got %v (hint %q)\nwant %q (hint %q)", err, diag.HintOf(err), want, hint)
	}
	if hint != "" && exit.Of(err) != exit.Refused {
		t.Errorf("exit code %d", exit.Of(err))
	}
}

// drop removes the voter of a node.
func (s State) drop(n int) State {
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool { return m.ID == voter(n).ID })
	return s
}

func TestMayJoin(t *testing.T) {
	if err := MayJoin(state(3, 1).drop(1), servers(3), "n1"); err != nil {
		t.Errorf("two healthy voters: %v", err)
	}
	for want, s := range map[string]State{
		"etcd still lists 1 member of n1": state(3, 1),
		"etcd has no quorum":              state(3, 1, 2).drop(1),
	} {
		if err := MayJoin(s, servers(3), "n1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestJoined(t *testing.T) {
	n1 := servers(1)[0]
	for _, c := range []struct {
		state State
		done  bool
		words string
	}{
		{state(3), true, "n1 votes, with 2 others"},
		{state(3, 1).drop(1), false, "n1 is no member of etcd yet"},
		{with(state(3).drop(1), Member{ID: 8, PeerURLs: voter(1).PeerURLs, Learner: true}, false), false, "etcd expects n1, which has not started"},
		{with(state(3).drop(1), learner(1), true), false, "n1 receives etcd's log and does not vote yet"},
		{state(3, 1), false, "n1 votes, but is not healthy: connection refused"},
	} {
		if done, words := Joined(c.state, n1); done != c.done || words != c.words {
			t.Errorf("%v, %q; want %v, %q", done, words, c.done, c.words)
		}
	}
}

func TestIDIsText(t *testing.T) {
	in := map[ID]Member{1 << 63: {ID: 0xabc}}
	text, err := json.Marshal(in)
	if want := `{"8000000000000000":{"id":"abc","name":"","peerURLs":null}}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var out map[ID]Member
	if err := json.Unmarshal(text, &out); err != nil || out[1<<63].ID != 0xabc {
		t.Errorf("%+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"wxyz"}`), &Member{}); err == nil {
		t.Error("wxyz is an ID")
	}
}
