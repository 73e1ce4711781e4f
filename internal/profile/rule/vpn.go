package rule

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// vpnPeers checks what tunnels say about each other.
func vpnPeers(c *cluster.Cluster, report Report) {
	const tunnelAll = "name the networks behind the peer; the nodes' own traffic does not go through a VPN"
	names, keys := seen[string]{}, seen[string]{}
	for i, v := range c.Network.VPN {
		path := fmt.Sprintf("network.vpn[%d]", i)
		for _, taken := range []string{"cilium", "lxc", "eth", "en", "br-", "docker", "cni", "flannel"} {
			if strings.HasPrefix(v.Name, taken) {
				report(path+".name", fmt.Sprintf("interfaces called %s… belong to others", taken), "choose a name such as wg0")
			}
		}
		for j, p := range v.AllowedIPs {
			if p.IsValid() && p.Bits() == 0 {
				report(fmt.Sprintf("%s.allowedIPs[%d]", path, j), "the whole internet behind VPN "+v.Name, tunnelAll)
			}
		}
		if first, again := names.again(v.Name, path); again && v.Name != "" {
			report(path+".name", fmt.Sprintf("the VPN %s is given twice", v.Name), "the first is "+first)
		}
		if first, again := keys.again(v.PublicKey, path); again && v.PublicKey != "" {
			report(path+".publicKey", "the public key of another peer", "the first is "+first)
		}
	}
}
