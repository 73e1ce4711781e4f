// Package ciliumvalues decides how Cilium is installed: the values of its chart and
// the objects that announce the addresses of load balancers. Bootstrap installs with
// them and the HelmRelease that takes over repeats them; what they say about the
// cluster's network must be equal in both.
//
// The keys are those of the chart of Cilium 1.20. What is the chart's default but
// would cut the network if it changed is written out all the same.
package ciliumvalues

import (
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// Where and as what Cilium is installed. A HelmRelease must name all of it, or Flux
// installs a second one.
const (
	Release   = "cilium"
	Namespace = "kube-system"
)

// nodeMask is the size of the share of the pod range that each node gets.
const nodeMask = 24

// Values are the chart's values, in the forms in which JSON is decoded.
func Values(c cluster.Cluster) map[string]any {
	v := map[string]any{
		// Never an address of one node, nor the Service: the agent must reach the
		// API when another node is down and before any Service works.
		"k8sServiceHost":       "127.0.0.1",
		"k8sServicePort":       apiPort(c),
		"kubeProxyReplacement": true,
		"ipam": map[string]any{"mode": "cluster-pool", "operator": map[string]any{
			"clusterPoolIPv4PodCIDRList": []any{c.Network.PodCIDR.String()},
			"clusterPoolIPv4MaskSize":    int64(nodeMask),
		}},
		"ipv4":           map[string]any{"enabled": true},
		"ipv6":           map[string]any{"enabled": false},
		"routingMode":    "tunnel",
		"tunnelProtocol": "vxlan",
		// Without these two a change of the configuration reaches no node, and all
		// looks well.
		"rollOutCiliumPods": true,
		"operator": map[string]any{
			"rollOutPods": true,
			"replicas":    operators(c),
			"image":       byTag(),
		},
		"image":   byTag(),
		"hubble":  hubble(c),
		"certgen": map[string]any{"image": byTag()},
		"l7Proxy": c.Cilium.Envoy,
		"envoy":   map[string]any{"enabled": c.Cilium.Envoy, "rollOutPods": true, "image": byTag()},
	}
	if c.ServesGateways() {
		// The chart would look whether the API server knows the class already, and
		// so differ between a rendering and an installation.
		v["gatewayAPI"] = map[string]any{"enabled": true, "gatewayClass": map[string]any{"create": "true"}}
	}
	if c.Network.LoadBalancerPool.IsValid() {
		v["l2announcements"] = map[string]any{"enabled": true}
		// Every announced Service renews a lease each 5 seconds; this is enough for
		// a hundred of them on one node.
		v["k8sClientRateLimit"] = map[string]any{"qps": int64(20), "burst": int64(40)}
	}
	return v
}

// apiPort is where a node's own loopback reaches the API: the API server itself
// where every node has one, otherwise the load balancer that k3s runs on all nodes.
func apiPort(c cluster.Cluster) int64 {
	if len(c.Servers()) == len(c.Nodes) {
		return k3sconf.APIPort
	}
	return k3sconf.BalancerPort
}

// operators is how many there are: two of them never share a node, so a second one
// would stay pending for ever on a cluster of one.
func operators(c cluster.Cluster) int64 { return int64(min(2, len(c.Nodes))) }

// byTag names images as they are in the bundle. A digest would be that of an index
// over all architectures, which no bundle has; what is in the bundle is pinned and signed.
func byTag() map[string]any { return map[string]any{"useDigest": false} }

// hubble has its certificates made in the cluster: Helm would make new ones with
// each upgrade and restart everything that uses them.
func hubble(c cluster.Cluster) map[string]any {
	if !c.Cilium.Hubble {
		return map[string]any{"enabled": false}
	}
	return map[string]any{
		"enabled":     true,
		"peerService": map[string]any{"clusterDomain": c.Network.ClusterDomain},
		"tls":         map[string]any{"enabled": true, "auto": map[string]any{"enabled": true, "method": "cronJob"}},
		"relay":       map[string]any{"enabled": true, "rollOutPods": true, "image": byTag()},
	}
}
