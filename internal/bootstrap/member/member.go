// Package member decides about the members of etcd: which of them belongs to a
// node, whether it may be removed, and whether a node that comes back has become a
// voter. It gets what was seen as values and says no in words that explain quorum,
// for the person who reads them has one dead node and little time.
package member

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway/slipway/internal/digest"
)

// ID is how etcd names a member. People see it in hexadecimal, as in etcdctl.
type ID uint64

// String is the form that etcdctl prints.
func (id ID) String() string { return fmt.Sprintf("%x", uint64(id)) }

// MarshalText implements encoding.TextMarshaler: many readers of JSON have no numbers
// of 64 bits.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return fmt.Errorf("not an ID of etcd: %q", b)
	}
	*id = ID(n)
	return nil
}

// Member is one entry of etcd's member list.
type Member struct {
	ID         ID       `json:"id"`
	Name       string   `json:"name"` // empty when it was added and has never started
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	Learner    bool     `json:"learner,omitempty"` // receives the log and has no vote
}

// String names the member for people.
func (m Member) String() string {
	name := m.Name
	if name == "" {
		name = "a member that never started"
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(m.PeerURLs, ", "))
}

// Health is what a member said when it was asked itself.
type Health struct {
	Answers bool   `json:"answers"`
	Healthy bool   `json:"healthy"`       // it answers, knows its leader, and reports no fault
	Why     string `json:"why,omitempty"` // why not
	Leader  bool   `json:"leader,omitempty"`
	Version string `json:"version,omitempty"`
}

// State is the member list with the health of each member.
type State struct {
	Cluster ID            `json:"cluster"`
	Members []Member      `json:"members"`
	Health  map[ID]Health `json:"health"` // of all members; one that is absent was not asked
	// Stale says that no quorum vouched for the list: it is what one member
	// remembers.
	Stale bool `json:"stale,omitempty"`
}

// Server is a node that runs etcd, as the profile or the cluster has it.
type Server struct {
	Name      string
	Addresses []string // without port or prefix length
}

// healthy reports whether the member can be counted on.
func (s State) healthy(m Member) bool { return m.Name != "" && s.Health[m.ID].Healthy }

// why says what is wrong with a member.
func (s State) why(m Member) string {
	h, asked := s.Health[m.ID]
	switch {
	case m.Name == "":
		return "it has never started"
	case !asked:
		return "it could not be asked"
	case h.Why == "":
		return "it is not healthy"
	}
	return h.Why
}

// Voters are the members that count.
func (s State) Voters() []Member {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return m.Learner })
}

// Learners are the members that do not vote yet.
func (s State) Learners() []Member {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return !m.Learner })
}

// At reports whether the member is where the server is. The peer URL decides: a
// member that never started has no name, and a name can be chosen freely.
func (m Member) At(s Server) bool {
	return slices.ContainsFunc(m.PeerURLs, func(raw string) bool {
		u, err := url.Parse(raw)
		return err == nil && slices.Contains(s.Addresses, u.Hostname())
	})
}

// named reports whether the member's name is one that k3s gives on that server: the
// node's name, or it with a dash and eight characters.
func (m Member) named(s Server) bool {
	rest, ok := strings.CutPrefix(m.Name, s.Name)
	return ok && (rest == "" || len(rest) == 9 && rest[0] == '-')
}

// owner is the server at the member's peer URL, or "".
func owner(m Member, servers []Server) string {
	for _, s := range servers {
		if m.At(s) {
			return s.Name
		}
	}
	return ""
}

// names lists members for people, by their servers where these are known.
func names(list []Member, servers []Server) string {
	var out []string
	for _, m := range list {
		name := owner(m, servers)
		if name == "" {
			name = m.String()
		}
		out = append(out, name)
	}
	switch len(out) {
	case 0:
		return "none"
	case 1:
		return out[0]
	}
	return strings.Join(out[:len(out)-1], ", ") + " and " + out[len(out)-1]
}

// Snapshot is what is known of a snapshot of etcd's data in a file.
type Snapshot struct {
	Size     int64         `json:"size"`
	Digest   digest.Digest `json:"digest"` // of the file
	Cluster  ID            `json:"etcdCluster"`
	Revision int64         `json:"revision"` // that the data has at least
	Version  string        `json:"version"`  // of the format in which etcd keeps it, "3.6.0"
}
