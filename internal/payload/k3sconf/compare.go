package k3sconf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/yamlform"
)

// critical are the keys in which all servers must agree. k3s's documentation lists
// most of them; it does not compare disable-kube-proxy and the rest of disable, and
// a server that has kube-proxy fights Cilium over the same packets.
var critical = []string{
	"cluster-cidr", "cluster-dns", "cluster-domain", "disable", "disable-cloud-controller", "disable-helm-controller",
	"disable-kube-proxy", "disable-network-policy", "egress-selector-mode", "embedded-registry", "flannel-backend",
	"flannel-external-ip", "flannel-ipv6-masq", "secrets-encryption", "secrets-encryption-provider", "service-cidr",
	"service-node-port-range",
}

// ClusterFlags is the part of a configuration in which all servers must agree, in
// one spelling: two servers agree when these bytes are equal. An unreadable
// configuration agrees with none but itself.
func ClusterFlags(config []byte) []byte {
	flags, err := clusterFlags(config)
	if err != nil {
		return config
	}
	var d document
	for _, key := range critical {
		if v, ok := flags[key]; ok {
			d.set(key, v)
		}
	}
	out, err := yamlform.Marshal("", d.node())
	if err != nil {
		return config
	}
	return out
}

// clusterFlags maps the critical keys to their values; lists are sorted, and a
// list of one is that one, because k3s repeats a flag for each item.
func clusterFlags(config []byte) (map[string]any, error) {
	var problems diag.List
	all := settings{by: map[string]setting{}}
	for _, l := range lines(ConfigPath, config, &problems) {
		all.put(l.key, l.value, l.appends)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, key := range critical {
		v, ok := all.get(key)
		if !ok {
			continue
		}
		items := split(v.values)
		slices.Sort(items)
		out[key] = slices.Compact(items)
	}
	return out, nil
}

// Agree compares the configurations of all servers, by the name of the node, and
// names every key in which they differ and what each server has. Nothing may start
// as long as they differ: a server that joins with other flags is refused by k3s, or
// worse, is not.
func Agree(configs map[string][]byte) error {
	nodes := slices.Sorted(maps.Keys(configs))
	values := map[string]map[string]string{}
	for _, n := range nodes {
		flags, err := clusterFlags(configs[n])
		if err != nil {
			return fmt.Errorf("k3s configuration of node %s: %w", n, err)
		}
		for _, key := range critical {
			if values[key] == nil {
				values[key] = map[string]string{}
			}
			values[key][n] = shown(flags[key])
		}
	}
	var out []string
	for _, key := range critical {
		if differ(values[key]) {
			out = append(out, key+" is "+perNode(nodes, values[key]))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return diag.WithHint(fmt.Errorf("the servers' k3s configurations differ: %s", strings.Join(out, "; ")),
		"write the same drop-ins to "+DropInDir+" on all servers, or none")
}

func shown(v any) string {
	items, _ := v.([]string)
	if items == nil {
		return "not set"
	}
	return strings.Join(items, ",")
}

func differ(byNode map[string]string) bool {
	seen := map[string]bool{}
	for _, v := range byNode {
		seen[v] = true
	}
	return len(seen) > 1
}

func perNode(nodes []string, values map[string]string) string {
	var out []string
	for _, n := range nodes {
		out = append(out, fmt.Sprintf("%q on %s", values[n], n))
	}
	return strings.Join(out, ", ")
}
