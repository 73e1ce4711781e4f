package member

import (
	"fmt"
	"slices"
)

// MayJoin tells why a node cannot be added now, or nil: whoever joins needs a
// cluster in which all others are started, healthy voters and nobody else learns.
func MayJoin(s State, servers []Server, target string) error {
	removal, err := Remove(s, servers, target)
	if err == nil && !removal.Empty() {
		err = fmt.Errorf("etcd still lists %s of %s", count(len(removal.Learners)+voters(removal), "member"), target)
	}
	return err
}

func voters(r Removal) int {
	if r.Voter == nil {
		return 0
	}
	return 1
}

// Joined says how far a server has come into etcd, and whether it has arrived: a
// started, healthy member that votes.
func Joined(s State, server Server) (done bool, words string) {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.At(server) })
	if i < 0 {
		return false, server.Name + " is no member of etcd yet"
	}
	m := s.Members[i]
	switch {
	case m.Name == "":
		return false, fmt.Sprintf("etcd expects %s, which has not started", server.Name)
	case m.Learner:
		return false, fmt.Sprintf("%s receives etcd's log and does not vote yet", server.Name)
	case !s.healthy(m):
		return false, fmt.Sprintf("%s votes, but is not healthy: %s", server.Name, s.why(m))
	}
	return true, fmt.Sprintf("%s votes, with %d others", server.Name, len(s.Voters())-1)
}
