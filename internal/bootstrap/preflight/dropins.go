package preflight

import (
	"github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// dropIns judges what operators put beside the configuration that will be written,
// and whether the servers would still agree with it.
func (l *list) dropIns(in Input) {
	c, err := k3sconf.Addressed(in.Cluster, facts.Found(in.Cluster, in.Seen))
	if err != nil {
		return // a node without an address has been named
	}
	effective := map[string][]byte{}
	for i, n := range c.Nodes {
		if i >= len(in.Seen) || in.Seen[i].Err != nil {
			continue
		}
		base, err := k3sconf.Render(c, n, anyJoin(c))
		if err != nil {
			l.error(n.Name, err)
			continue
		}
		merged, findings := k3sconf.Merge(base, in.Seen[i].DropIns)
		for _, f := range findings {
			l.add(n.Name, "%s: %s (%s)", f.Pos, f.Message, f.Path)("%s", f.Hint)
		}
		if n.Role == cluster.RoleServer {
			effective[n.Name] = merged
		}
	}
	l.error("", k3sconf.Agree(effective))
}

// anyJoin stands for the server that is joined, which no drop-in may change.
func anyJoin(c cluster.Cluster) k3sconf.Join {
	return k3sconf.Join{Server: k3sconf.URL(c.Nodes[0].Address())}
}
