package identity

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/member"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Same refuses a cluster that is not the recorded one: its CA is another, and nothing
// else says that it is the same all the same. A rotated CA is recognised by the UID
// of kube-system, which no rotation changes.
func Same(recorded, seen Cluster) error {
	switch {
	case recorded.CA.IsZero() || seen.CA.IsZero():
		return fmt.Errorf("it is not known which cluster this is: no CA was seen")
	case recorded.Environment != seen.Environment:
		return other(recorded, "the ledger is about environment %s, the profile about %s", recorded.Environment, seen.Environment)
	case recorded.UID != "" && seen.UID != "" && recorded.UID != seen.UID:
		return other(recorded, "the cluster that answers is not the one that the ledger knows: its CA is %s and its kube-system was made as %s; recorded are CA %s and %s",
			seen.CA.Short(), seen.UID, recorded.CA.Short(), recorded.UID)
	case recorded.CA == seen.CA, recorded.UID != "" && recorded.UID == seen.UID:
		return nil
	}
	return other(recorded, "the cluster that answers is not the one that the ledger knows: its CA is %s, recorded is %s", seen.CA.Short(), recorded.CA.Short())
}

func other(recorded Cluster, format string, args ...any) error {
	hint := fmt.Sprintf("use the ledger of this cluster; when the recorded one (%s, seen %s) is gone for good, forget it: bootstrap adopt --forget %s",
		recorded.Name, recorded.Seen.UTC().Format("2006-01-02"), recorded.CA.Short())
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf(format, args...), hint))
}

// Difference is one thing that the record says otherwise than the cluster.
type Difference struct {
	What string
	Why  string
	// Passing: it changes while nobody does anything about it, as Flux goes on.
	Passing bool
}

// Differences are what a record lacks or has wrong. When it was looked at is no
// difference, and neither is what could not be seen this time.
func Differences(recorded, seen Cluster) []Difference {
	var out []Difference
	note := func(what, format string, args ...any) {
		out = append(out, Difference{What: what, Why: fmt.Sprintf(format, args...)})
	}
	if recorded.CA != seen.CA {
		note("CA", "it is %s, recorded is %s", seen.CA.Short(), orNothing(recorded.CA.Short()))
	}
	for _, f := range []struct{ what, have, is string }{{"UID of kube-system", recorded.UID, seen.UID}, {"etcd's cluster ID", recorded.Etcd, seen.Etcd}} {
		if f.is != "" && f.is != f.have {
			note(f.what, "it is %s, recorded is %s", f.is, orNothing(f.have))
		}
	}
	if len(seen.Members) > 0 && !sameMembers(recorded.Members, seen.Members) {
		note("members of etcd", "they are %s, recorded are %s", memberNames(seen), memberNames(recorded))
	}
	out = append(out, nodes(recorded, seen)...)
	if !slices.Equal(recorded.Releases, seen.Releases) {
		note("Helm releases", "they are %s, recorded are %s", releases(seen), releases(recorded))
		out[len(out)-1].Passing = true
	}
	if flux(recorded) != flux(seen) {
		note("Flux", "it has %s, recorded is %s", orNothing(flux(seen)), orNothing(flux(recorded)))
		out[len(out)-1].Passing = true
	}
	return out
}

func nodes(recorded, seen Cluster) []Difference {
	var out []Difference
	for _, n := range seen.Nodes {
		i := slices.IndexFunc(recorded.Nodes, func(r Node) bool { return r.Name == n.Name })
		switch {
		case i < 0:
			out = append(out, Difference{What: "node " + n.Name, Why: "is not recorded"})
		case !reflect.DeepEqual(filled(n, recorded.Nodes[i]), recorded.Nodes[i]):
			out = append(out, Difference{What: "node " + n.Name, Why: "has changed"})
		}
	}
	for _, r := range recorded.Nodes {
		if !slices.ContainsFunc(seen.Nodes, func(n Node) bool { return n.Name == r.Name }) {
			out = append(out, Difference{What: "node " + r.Name, Why: "is recorded, and not in the cluster"})
		}
	}
	return out
}

// Merged is what was seen, and of the record what could not be seen this time.
func Merged(recorded, seen Cluster) Cluster {
	if seen.UID == "" {
		seen.UID = recorded.UID
	}
	if len(seen.Members) == 0 || sameMembers(recorded.Members, seen.Members) && unknown(seen.Members) {
		seen.Members = recorded.Members
	}
	if seen.Etcd == "" {
		seen.Etcd = recorded.Etcd
	}
	seen.Nodes = slices.Clone(seen.Nodes)
	for i, n := range seen.Nodes {
		for _, r := range recorded.Nodes {
			if r.Name == n.Name {
				seen.Nodes[i] = filled(n, r)
			}
		}
	}
	return seen
}

// sameMembers compares by name and ID, as far as both are known: who looks through
// the API server alone sees no IDs.
func sameMembers(a, b []member.Member) bool {
	return slices.EqualFunc(a, b, func(x, y member.Member) bool {
		return x.Name == y.Name && x.Learner == y.Learner && (x.ID == y.ID || x.ID == 0 || y.ID == 0)
	})
}

func unknown(list []member.Member) bool {
	return slices.ContainsFunc(list, func(m member.Member) bool { return m.ID == 0 })
}

// filled is a node with what only SSH shows taken from the record, as long as it is
// the same machine that was installed then.
func filled(n, recorded Node) Node {
	if n.MachineID != "" && recorded.MachineID != "" && n.MachineID != recorded.MachineID {
		return n
	}
	for _, f := range []struct{ have, from *string }{
		{&n.MachineID, &recorded.MachineID}, {&n.InstanceID, &recorded.InstanceID}, {&n.Initiator, &recorded.Initiator}, {&n.RootHash, &recorded.RootHash},
	} {
		if *f.have == "" {
			*f.have = *f.from
		}
	}
	if len(n.HostKeys) == 0 {
		n.HostKeys = recorded.HostKeys
	}
	return n
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func memberNames(c Cluster) string {
	var out []string
	for _, m := range c.Members {
		name := m.Name
		if m.Learner {
			name += " (learner)"
		}
		out = append(out, name)
	}
	return orNothing(strings.Join(out, ", "))
}

func releases(c Cluster) string {
	var out []string
	for _, r := range c.Releases {
		out = append(out, fmt.Sprintf("%s/%s revision %d (%s)", r.Namespace, r.Name, r.Revision, r.Status))
	}
	return orNothing(strings.Join(out, ", "))
}

func flux(c Cluster) string {
	if c.Flux == nil {
		return ""
	}
	return strings.TrimSpace(c.Flux.URL + " " + c.Flux.Revision)
}
