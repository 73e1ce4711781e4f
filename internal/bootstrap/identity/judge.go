package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/exit"
)

// Standing is how a node answered when it was asked whether it knows a cluster.
type Standing string

// The answers of a node.
const (
	Silent  Standing = "silent"  // it does not answer: nothing is known of it
	Blank   Standing = "blank"   // it answers, and holds no data of a cluster
	Stopped Standing = "stopped" // it holds data of a cluster that does not run
	Serving Standing = "serving" // it serves a cluster
)

// Answer is what one server of the profile said.
type Answer struct {
	Node     string
	Standing Standing
	CA       digest.Digest // of Serving, and of Stopped when it could be read
	Why      string        // of Silent: why not
}

// Start says what may be done first.
type Start struct {
	Init bool     // nobody knows a cluster: one may be made, once
	Join []string // servers that serve the cluster and can be joined
	CA   digest.Digest
}

// Judge decides whether a cluster may be made. That is so only when every server was
// asked, every one is blank, and the ledger knows of none: an empty ledger beside a
// living cluster means that the ledger was lost, and a node that does not answer may
// be all that is left of one. recorded is nil when the ledger knows no cluster.
func Judge(recorded *Cluster, answers []Answer) (Start, error) {
	serving, stopped, silent := pick(answers, Serving), pick(answers, Stopped), pick(answers, Silent)
	switch {
	case len(serving) > 0:
		return join(recorded, serving)
	case len(stopped) > 0:
		return Start{}, refuse("start k3s there (systemctl start k3s) and look at its journal; bootstrap never starts a second cluster beside one",
			"%s %s data of a cluster, and no server serves it", names(stopped), verb(stopped, "holds", "hold"))
	case len(silent) > 0:
		return Start{}, refuse("switch it on, or take it out of the profile",
			"%s; as long as a server cannot be asked, it may hold a cluster that a new one would take the place of", reasons(silent))
	case recorded != nil:
		return Start{}, refuse(fmt.Sprintf("restore a snapshot of etcd (bootstrap snapshot list), or begin anew and lose what it held: bootstrap adopt --forget %s", recorded.CA.Short()),
			"the ledger knows cluster %s (CA %s, seen %s), but all of its servers are blank", recorded.Name, recorded.CA.Short(), recorded.Seen.UTC().Format("2006-01-02 15:04"))
	case len(answers) == 0:
		return Start{}, errors.New("the profile has no server")
	}
	return Start{Init: true}, nil
}

func join(recorded *Cluster, serving []Answer) (Start, error) {
	s := Start{CA: serving[0].CA}
	for _, a := range serving {
		if a.CA != s.CA {
			return Start{}, refuse("decide which one is yours, and take the nodes of the other out of the profile",
				"the servers serve different clusters: %s has CA %s, %s has CA %s", serving[0].Node, s.CA.Short(), a.Node, a.CA.Short())
		}
		s.Join = append(s.Join, a.Node)
	}
	if recorded == nil {
		return s, nil
	}
	// The UID is not known here; a rotated CA is taken up by adopting anew.
	seen := Cluster{Environment: recorded.Environment, CA: s.CA}
	return s, Same(*recorded, seen)
}

func pick(answers []Answer, s Standing) []Answer {
	return slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return a.Standing != s })
}

func names(list []Answer) string {
	var out []string
	for _, a := range list {
		out = append(out, a.Node)
	}
	return strings.Join(out, ", ")
}

func reasons(list []Answer) string {
	var out []string
	for _, a := range list {
		text := a.Node + " does not answer"
		if a.Why != "" {
			text += " (" + a.Why + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func verb(list []Answer, one, many string) string {
	if len(list) == 1 {
		return one
	}
	return many
}

func refuse(hint, format string, args ...any) error {
	return exit.With(exit.Refused, diag.WithHint(fmt.Errorf(format, args...), hint))
}

// Wanted is a node as the profile and the build would make it today.
type Wanted struct {
	Name       string
	InstanceID string // of its seed
	RootHash   string // of the image
	K3s        string
}

// Drift says of each node how it differs from what an install would make of it now.
// It is for people: a changed profile never reimages a node, bootstrap rebuild does.
func Drift(wanted []Wanted, nodes []Node) []Difference {
	var out []Difference
	for _, w := range wanted {
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == w.Name })
		if i < 0 {
			continue
		}
		n := nodes[i]
		for _, f := range []struct{ what, is, want string }{
			{"seed", n.InstanceID, w.InstanceID}, {"image", n.RootHash, w.RootHash}, {"k3s", n.K3s, w.K3s},
		} {
			if f.is != "" && f.want != "" && f.is != f.want {
				out = append(out, Difference{What: n.Name, Why: fmt.Sprintf("%s drift: it has %s, an install would give %s", f.what, short(f.is), short(f.want))})
			}
		}
	}
	return out
}

func short(s string) string {
	if len(s) > 24 {
		return s[:24] + "…"
	}
	return s
}
