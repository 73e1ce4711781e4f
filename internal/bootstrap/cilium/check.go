package cilium

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/payload/object"
)

// group is that of the Gateway API.
const group = "gateway.networking.k8s.io"

// required are the kinds, all of version v1, without which Cilium 1.20's operator
// serves no Gateway at all.
var required = []string{"GatewayClass", "Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "ReferenceGrant", "BackendTLSPolicy"}

// complete refuses definitions that lack a kind: the operator would start, say so in
// its log only, and every Gateway would stay without an address.
func complete(g Gateway) error {
	lacking := slices.Clone(required)
	for _, d := range g.Definitions {
		if object.Definition(d) && object.Text(d, "spec", "group") == group && serves(d, "v1") {
			kind := object.Text(d, "spec", "names", "kind")
			lacking = slices.DeleteFunc(lacking, func(k string) bool { return k == kind })
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	err := fmt.Errorf("the build's Gateway API %s has no %s of version v1, which Cilium needs", g.Version, strings.Join(lacking, ", "))
	return exit.With(exit.Refused, diag.WithHint(err, "set cilium.gatewayAPIVersion to the version that this Cilium names, pin and build again"))
}

func serves(definition map[string]any, version string) bool {
	return slices.ContainsFunc(object.Maps(definition, "spec", "versions"), func(v map[string]any) bool {
		return object.Text(v, "name") == version && object.At(v, "served") == true
	})
}

// check refuses values with which the cluster would not come up, or would come apart
// later; all reasons at once.
func check(n Network) error {
	var reasons []string
	for _, rule := range []func(Network) string{proxy, endpoint, addresses, replicas, rolling, certificates, defined} {
		if reason := rule(n); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	err := fmt.Errorf("the values for Cilium are refused: %s", strings.Join(reasons, "; "))
	return exit.With(exit.Refused, err)
}

func proxy(n Network) string {
	if fmt.Sprint(object.At(n.Values, "kubeProxyReplacement")) != "true" {
		return "kubeProxyReplacement is not true, and k3s runs no kube-proxy"
	}
	return ""
}

// endpoint: the API server by way of the node itself. One node's address would take
// the network of all with it when that node is lost; the Service's is made by Cilium.
func endpoint(n Network) string {
	host, port := fmt.Sprint(object.At(n.Values, "k8sServiceHost")), fmt.Sprint(object.At(n.Values, "k8sServicePort"))
	if host != "127.0.0.1" && host != "localhost" || port != "6443" && port != "6444" {
		return fmt.Sprintf("k8sServiceHost and k8sServicePort are %s:%s and not the node's own API server, 127.0.0.1:6443", host, port)
	}
	return ""
}

func addresses(n Network) string {
	if mode := object.Text(n.Values, "ipam", "mode"); mode == "kubernetes" {
		return "" // the addresses are those that k3s gives its nodes
	}
	list := fmt.Sprint(object.At(n.Values, "ipam", "operator", "clusterPoolIPv4PodCIDRList"))
	if strings.Trim(list, "[]") != n.PodCIDR {
		return fmt.Sprintf("ipam.operator.clusterPoolIPv4PodCIDRList is %s and not k3s's cluster-cidr %s", list, n.PodCIDR)
	}
	return ""
}

// replicas: two of the operator's pods never share a node.
func replicas(n Network) string {
	wanted := int64(2) // the chart's default
	if object.At(n.Values, "operator", "replicas") != nil {
		wanted = object.Int(n.Values, "operator", "replicas")
	}
	if wanted > int64(len(n.Nodes)) {
		return fmt.Sprintf("operator.replicas is %d with %d nodes; each needs a node of its own", wanted, len(n.Nodes))
	}
	return ""
}

// rolling: without these a changed setting reaches no node, and nothing says so.
func rolling(n Network) string {
	if object.At(n.Values, "rollOutCiliumPods") != true || object.At(n.Values, "operator", "rollOutPods") != true {
		return "rollOutCiliumPods and operator.rollOutPods are not both true"
	}
	return ""
}

// certificates made by Helm are new with every rendering, so that no two renderings
// are equal.
func certificates(n Network) string {
	if object.At(n.Values, "hubble", "enabled") == false {
		return ""
	}
	if method := object.Text(n.Values, "hubble", "tls", "auto", "method"); method == "" || method == "helm" {
		if object.At(n.Values, "hubble", "tls", "enabled") != false {
			return "hubble.tls.auto.method is helm, which makes new certificates with every upgrade"
		}
	}
	return ""
}

func defined(n Network) string {
	if object.At(n.Values, "gatewayAPI", "enabled") == true && n.Gateway == nil {
		return "gatewayAPI.enabled is true, and the build has no definitions of the Gateway API"
	}
	return ""
}
