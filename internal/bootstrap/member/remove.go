package member

import (
	"errors"
	"fmt"
	"slices"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Removal is what has to leave the member list before a node can come back, in this
// order: learners first, because etcd admits one at a time and a dead one keeps the
// place for ever.
type Removal struct {
	Learners []Member
	Voter    *Member // nil when the node has none
}

// Empty reports whether nothing has to be removed.
func (r Removal) Empty() bool { return len(r.Learners) == 0 && r.Voter == nil }

// Remove decides what may be removed so that the target can be built anew: its own
// member, found by its peer URL and by nothing else, and learners that belong to
// nobody. It refuses when a removal would cost quorum, when another member is
// unhealthy, and when it cannot tell whose a member is.
func Remove(s State, servers []Server, target string) (Removal, error) {
	i := slices.IndexFunc(servers, func(v Server) bool { return v.Name == target })
	if i < 0 {
		return Removal{}, fmt.Errorf("%s is no server: it has no member of etcd", target)
	}
	q := quorum{State: s, servers: servers, target: servers[i]}
	if err := q.now(); err != nil {
		return Removal{}, err
	}
	out, err := q.find()
	if err != nil {
		return Removal{}, err
	}
	return out, q.without(out)
}

// quorum judges one removal.
type quorum struct {
	State
	servers []Server
	target  Server
}

// majority is how many of n voters have to agree.
func majority(n int) int { return n/2 + 1 }

// now refuses when etcd agrees on nothing any more: it would not take a removal.
func (q quorum) now() error {
	voters := q.Voters()
	if len(voters) == 0 {
		return errors.New("etcd lists no voters")
	}
	good, bad := q.split(voters)
	if need := majority(len(voters)); len(good) < need {
		return q.refuse("bring another of them back first: switch it on, and look at journalctl -u k3s there; when that cannot be done, restore a snapshot (bootstrap snapshot list)",
			"etcd has no quorum: of its %s %d have to agree, but %s; %s; nobody can be removed and nothing written until another one is back",
			count(len(voters), "voter"), need, q.whoAnswers(voters, need), q.reasons(bad))
	}
	if q.Stale {
		return q.refuse("wait until etcd has elected a leader, then try again",
			"no quorum of etcd has answered: the list of its members may be out of date")
	}
	return nil
}

// whoAnswers says who is left. When there are enough of them and still no quorum,
// they do not reach each other.
func (q quorum) whoAnswers(voters []Member, need int) string {
	there := slices.DeleteFunc(slices.Clone(voters), func(m Member) bool { return m.Name == "" || !q.Health[m.ID].Answers })
	if len(there) >= need {
		return "they do not, although " + names(there, q.servers) + " answer"
	}
	return only(names(there, q.servers), len(there), "answers", "answer")
}

// find picks what belongs to the target, and refuses contradictions.
func (q quorum) find() (Removal, error) {
	var out Removal
	for _, m := range q.Members {
		whose := owner(m, q.servers)
		switch {
		case whose == q.target.Name && m.Learner:
			out.Learners = append(out.Learners, m)
		case whose == q.target.Name && out.Voter != nil:
			return out, q.refuse("look at etcd's member list and remove the wrong one by hand",
				"two voters of etcd are at the addresses of %s: %s and %s", q.target.Name, *out.Voter, m)
		case whose == q.target.Name:
			if err := q.consistent(m); err != nil {
				return out, err
			}
			out.Voter = &m
		case m.Learner && whose == "" && q.healthy(m):
			return out, q.refuse("add its node to the profile, or end k3s there and try again",
				"a server that is in no profile is joining etcd right now: %s", m)
		case m.Learner && whose == "":
			out.Learners = append(out.Learners, m)
		case m.Learner:
			return out, q.refuse(fmt.Sprintf("wait until %s is a voter; when it never becomes one, rebuild %s first", whose, whose),
				"%s is joining etcd right now: its member does not vote yet (%s)", whose, q.learning(m))
		case m.named(q.target):
			return out, q.refuse("correct the address in the profile, or remove that member by hand",
				"the member %s carries the name of %s, but is not at any of its addresses (%s)", m, q.target.Name, list(q.target.Addresses))
		}
	}
	return out, nil
}

// consistent refuses a member at the target's address that is another server's by
// name: somebody has moved addresses, and the wrong member would go.
func (q quorum) consistent(m Member) error {
	for _, s := range q.servers {
		if s.Name != q.target.Name && m.named(s) && !m.named(q.target) {
			return q.refuse("compare the addresses in the profile with those of the nodes",
				"the member %s is at the address of %s, but carries the name of %s", m, q.target.Name, s.Name)
		}
	}
	return nil
}

// without refuses when those that stay could not go on.
func (q quorum) without(r Removal) error {
	rest := slices.DeleteFunc(q.Voters(), func(m Member) bool { return r.Voter != nil && m.ID == r.Voter.ID })
	if len(rest) == 0 {
		return q.refuse("add servers to the profile and run bootstrap up first, or restore a snapshot onto a new cluster",
			"%s is the only voter of etcd: with it the cluster's data would be gone", q.target.Name)
	}
	good, bad := q.split(rest)
	if len(bad) == 0 {
		return nil
	}
	if need := majority(len(rest)); len(good) < need {
		return q.refuse(q.mend(bad),
			"quorum would be lost: etcd has %s; without %s there are %d, of which %d have to agree, but %s; %s",
			count(len(q.Voters()), "voter"), q.target.Name, len(rest), need, only(names(good, q.servers), len(good), "is healthy", "are healthy"), q.reasons(bad))
	}
	return q.refuse(q.mend(bad), "another member of etcd is unhealthy: %s", q.reasons(bad))
}

func (q quorum) mend(bad []Member) string {
	hint := fmt.Sprintf("mend %s first (journalctl -u k3s says what is wrong there)", names(bad, q.servers))
	for _, m := range bad {
		if owner(m, q.servers) == "" {
			hint += fmt.Sprintf("; %s is of no node of the profile: when it is gone for good, etcdctl member remove %s", m, m.ID)
		}
	}
	return hint
}

func (q quorum) split(list []Member) (good, bad []Member) {
	for _, m := range list {
		if q.healthy(m) {
			good = append(good, m)
		} else {
			bad = append(bad, m)
		}
	}
	return good, bad
}

// reasons says of each member what is wrong with it.
func (q quorum) reasons(bad []Member) string {
	var out []string
	for _, m := range bad {
		out = append(out, names([]Member{m}, q.servers)+": "+q.why(m))
	}
	return list(out)
}

func (q quorum) learning(m Member) string {
	if q.healthy(m) {
		return "it answers"
	}
	return q.why(m)
}

func (q quorum) refuse(hint, format string, args ...any) error {
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf(format, args...), hint))
}

func only(who string, n int, does, do string) string {
	switch n {
	case 0:
		return "none " + does
	case 1:
		return "only " + who + " " + does
	}
	return "only " + who + " " + do
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func list(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += "; "
		}
		out += w
	}
	return out
}
