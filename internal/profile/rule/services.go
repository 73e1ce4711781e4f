package rule

import (
	"fmt"

	"github.com/slipway/slipway/internal/cluster"
)

// proxies finds exceptions to a proxy that is not there.
func proxies(c *cluster.Cluster, report Report) {
	if p := c.Proxy; p.HTTP == "" && p.HTTPS == "" && len(p.NoProxy) > 0 {
		report("proxy", "exceptions (noProxy) without a proxy", "give proxy.http or proxy.https, or leave it out")
	}
}

func registries(c *cluster.Cluster, report Report) {
	names := seen[string]{}
	for i, r := range c.Registries {
		path := fmt.Sprintf("registries[%d]", i)
		if first, again := names.again(r.Name, path); again && r.Name != "" {
			report(path+".name", fmt.Sprintf("the registry %s is given twice", r.Name), "the first is "+first+"; a registry may have several mirrors")
		}
	}
}

// replicas checks that Longhorn can keep what is asked for: two replicas of one
// volume never share a node.
func replicas(c *cluster.Cluster, report Report) {
	l := &c.Longhorn
	switch n := len(c.Nodes); {
	case !l.Enabled || n == 0:
	case l.Replicas < 1:
		report("longhorn.replicas", fmt.Sprintf("%d replicas", l.Replicas), "a volume has at least one; set longhorn.enabled: false to do without Longhorn")
	case l.Replicas > n:
		report("longhorn.replicas", fmt.Sprintf("%d replicas, but only %s: every volume would be degraded for ever", l.Replicas, count(n, "node")), fmt.Sprintf("each replica needs a node of its own; write at most %d", n))
	}
}

// fluxSource wants all or nothing of what Flux follows.
func fluxSource(c *cluster.Cluster, report Report) {
	f := &c.Flux
	switch {
	case f.URL == "" && f.Path != "":
		report("flux", "a path without a repository", "give flux.url, too")
	case f.URL != "" && f.Path == "":
		report("flux", "a repository without the path of this cluster in it", "give flux.path, such as clusters/"+c.Environment)
	}
}
