// Package start decides how k3s comes to run on the servers: who starts a cluster,
// or who joins it through whom, or why neither may happen. A second cluster beside a
// living one is the worst that bootstrap could do, so every doubt is a refusal.
package start

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/bootstrap/identity"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
)

// Decision is what may be done.
type Decision struct {
	// Init is the server that starts the cluster, or "". It is good for the run in
	// which it was decided, and for no other.
	Init string
	// Via are the servers that can be joined, in the order of the profile.
	Via []string
	CA  digest.Digest // of the cluster that can be joined
	// TokenCA is how a token names that CA, hex; empty when no server could tell.
	TokenCA string
}

// Decide decides from what every server of the profile said, in the order of the
// profile. recorded is what the ledger knows, nil when it knows no cluster.
//
// No server is special: which one starts the cluster matters once, and afterwards
// nobody does. A run that was cut off between telling a server to start and seeing
// it start is taken up where it was: that server, and no other, goes on.
func Decide(recorded *identity.Cluster, servers []facts.Seen) (Decision, error) {
	if err := noOther(servers); err != nil {
		return Decision{}, err
	}
	judged, err := identity.Judge(recorded, answers(servers))
	if err != nil {
		return Decision{}, err
	}
	told := armed(servers)
	if !judged.Init {
		d := Decision{Via: judged.Join, CA: judged.CA, TokenCA: tokenCA(servers, judged.CA)}
		return d, noneStarting(told)
	}
	switch len(told) {
	case 0:
		return Decision{Init: servers[0].Node}, nil
	case 1:
		return Decision{Init: told[0].Node}, nil
	}
	return Decision{}, refuse("keep the configuration of one and remove it from the others: rm "+configPath,
		"%s are told to start a cluster each", names(told))
}

const configPath = "/etc/rancher/k3s/config.yaml"

// noOther refuses what Slipway never makes and cannot join.
func noOther(servers []facts.Seen) error {
	for _, s := range servers {
		if s.Facts.K3s.SQLite && !s.Facts.K3s.Etcd {
			return refuse("save what it holds, then install the node anew; a cluster of one server without etcd cannot grow",
				"%s holds a cluster of its own that is kept without etcd", s.Node)
		}
	}
	return nil
}

// armed are the servers that were told to start a cluster and have no data yet.
func armed(servers []facts.Seen) []facts.Seen {
	return slices.DeleteFunc(slices.Clone(servers), func(s facts.Seen) bool {
		return s.Err != nil || !s.Facts.K3s.Init || s.Facts.K3s.Knows()
	})
}

// noneStarting refuses while a server is about to start a second cluster. One that
// was told so and does not run gets another configuration before it does.
func noneStarting(told []facts.Seen) error {
	for _, s := range told {
		if s.Facts.K3s.Running() {
			return refuse(fmt.Sprintf("stop it at once: systemctl stop k3s, then rm %s", configPath),
				"%s is starting a cluster of its own beside the one that lives", s.Node)
		}
	}
	return nil
}

func tokenCA(servers []facts.Seen, ca digest.Digest) string {
	for _, s := range servers {
		if s.Facts.K3s.CA == ca && s.Facts.K3s.TokenCA != "" {
			return s.Facts.K3s.TokenCA
		}
	}
	return ""
}

// Through is the server that a node joins through: the first that can be joined and
// is not the node itself, or "" when there is none.
func (d Decision) Through(node string) string {
	for _, v := range d.Via {
		if v != node {
			return v
		}
	}
	if d.Init != node {
		return d.Init
	}
	return ""
}

func names(list []facts.Seen) string {
	var out []string
	for _, s := range list {
		out = append(out, s.Node)
	}
	return strings.Join(out, ", ")
}

func refuse(hint, format string, args ...any) error {
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf(format, args...), hint))
}

// answers is what servers said about a cluster. One that holds data serves it when
// k3s runs. One on which k3s is starting serves it when nobody else does yet: a run
// that was cut off has left it so, and it is on its way.
func answers(servers []facts.Seen) []identity.Answer {
	serving := false
	for _, s := range servers {
		serving = serving || s.Err == nil && s.Facts.K3s.Knows() && s.Facts.K3s.State == "active"
	}
	var out []identity.Answer
	for _, s := range servers {
		a := identity.Answer{Node: s.Node, Standing: identity.Blank}
		switch k := s.Facts.K3s; {
		case s.Err != nil:
			a.Standing, a.Why = identity.Silent, s.Err.Error()
		case !k.Knows():
		case k.State == "active", k.Starting() && !serving:
			a.Standing, a.CA = identity.Serving, k.CA
		default:
			a.Standing, a.CA = identity.Stopped, k.CA
		}
		out = append(out, a)
	}
	return out
}
