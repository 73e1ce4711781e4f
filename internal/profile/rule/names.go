package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// baseNames refuses an environment's name in a file that extends nothing: it is
// an overlay whose extends was forgotten.
func baseNames(c *cluster.Cluster, report Report) {
	if c.Environment != "" {
		report("environment", "an environment in a file that extends nothing", "an overlay names its base: extends: base.yaml")
	}
}

// reservedNames refuses names that mean something else already.
func reservedNames(c *cluster.Cluster, report Report) {
	if slices.Contains([]string{"base", "schema"}, c.Environment) {
		report("environment", c.Environment+" is the name of another file of the profiles", "choose the name of the environment, such as prod")
	}
	for i, n := range c.Nodes {
		if slices.Contains([]string{"localhost", "localdomain", "kubernetes", "none", "debian"}, n.Name) {
			report(nodePath(i)+".name", n.Name+" cannot be the name of a node", "it means something else to the system or to Kubernetes")
		}
	}
}

func nodeNames(c *cluster.Cluster, report Report) {
	names := seen[string]{}
	for i, n := range c.Nodes {
		if n.Name == "" {
			continue
		}
		if first, again := names.again(n.Name, nodePath(i)); again {
			report(nodePath(i)+".name", fmt.Sprintf("the node name %s is given twice", n.Name), "the first is "+first)
		}
	}
}

func nodeSerials(c *cluster.Cluster, report Report) {
	serials := seen[string]{}
	for i, n := range c.Nodes {
		if n.Serial == "" {
			continue
		}
		if first, again := serials.again(n.Serial, nodePath(i)); again {
			report(nodePath(i)+".serial", fmt.Sprintf("the machine serial number %s is given twice", n.Serial), "the first is "+first+"; firmware without a real number is better left out")
		}
	}
}

// nodeHostKeys finds a key that two nodes have: either could pass for the other.
func nodeHostKeys(c *cluster.Cluster, report Report) {
	keys := seen[string]{}
	for i, n := range c.Nodes {
		for j, key := range n.HostKeys {
			path := fmt.Sprintf("%s.hostKeys[%d]", nodePath(i), j)
			f := strings.Fields(key) // type, base64, perhaps a comment
			if len(f) < 2 {
				continue
			}
			if first, again := keys.again(f[1], path); again {
				report(path, "the host key is given twice", "the first is "+first+"; each node has its own, its console shows the fingerprint")
			}
		}
	}
}

// maxVoters is the largest etcd cluster that its authors advise.
const maxVoters = 7

// serverCount keeps etcd able to lose a member: a majority of two is two, so a
// second server makes losing the cluster twice as likely, not half.
func serverCount(c *cluster.Cluster, report Report) {
	servers, last := 0, 0
	for i, n := range c.Nodes {
		switch n.Role {
		case "":
			return
		case cluster.RoleServer:
			servers, last = servers+1, i
		}
	}
	path := nodePath(last) + ".role"
	switch {
	case len(c.Nodes) == 0:
	case servers == 0:
		report(path, "no node has the role server", "at least one node runs the control plane; one or three are usual")
	case servers > maxVoters:
		report(path, fmt.Sprintf("%d servers; etcd takes at most %d members", servers, maxVoters), "make the others agents")
	case servers%2 == 0:
		report(path, fmt.Sprintf("%d servers: etcd needs a majority of %d and so survives no more losses than with %d", servers, servers/2+1, servers-1),
			fmt.Sprintf("use %d or %d servers, the others can be agents", servers-1, servers+1))
	}
}
