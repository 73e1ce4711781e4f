package rule

import (
	"strings"

	"github.com/slipway/slipway/internal/cluster"
)

// k3sKeys refuses the keys of k3s's config.yaml that are Slipway's: the
// cluster-wide ones must be equal on all servers, byte for byte, and those of
// a node follow from the profile. Values are never repeated, they may be secrets.
func k3sKeys(c *cluster.Cluster, report Report) {
	for key := range c.K3s.Config {
		if hint := ownedKey(key); hint != "" {
			report(k3sPath(key), "the k3s key "+key+" is Slipway's", hint)
		}
	}
}

func k3sPath(key string) string { return "k3s.config." + key }

// ownedKey says who sets a key, or is "" for one that a profile may set.
func ownedKey(key string) string {
	switch key {
	case "disable":
		return "traefik, servicelb and local-storage are always disabled; what else runs is for Flux to say"
	case "disable-network-policy", "network-policy", "disable-kube-proxy", "kube-proxy":
		return "Cilium takes the place of kube-proxy and of the network policy controller, always; these are keys of their own, never items of disable"
	case "flannel-backend", "flannel-conf", "flannel-iface", "flannel-ipv6-masq", "flannel-external-ip", "flannel-cni-conf":
		return "the container network is Cilium"
	case "cluster-init", "server", "cluster-reset", "cluster-reset-restore-path":
		return "bootstrap decides which server starts a cluster and which ones join, by asking the nodes"
	case "cluster-cidr":
		return "write it to network.podCIDR"
	case "service-cidr":
		return "write it to network.serviceCIDR"
	case "cluster-dns":
		return "write it to network.clusterDNS"
	case "cluster-domain":
		return "write it to network.clusterDomain"
	case "tls-san", "tls-san-security":
		return "all nodes and network.apiVIP are always in the certificate"
	case "node-ip", "node-name", "node-external-ip", "advertise-address", "bind-address", "advertise-port", "https-listen-port", "with-node-id":
		return "it follows from nodes[]: name, and the first address of the first interface"
	case "private-registry":
		return "write mirrors to registries"
	case "secrets-encryption", "disable-helm-controller", "disable-cloud-controller", "disable-apiserver", "disable-etcd",
		"disable-scheduler", "disable-controller-manager", "egress-selector-mode":
		return "it must be equal on all servers and never change; bootstrap sets it"
	case "data-dir", "config", "write-kubeconfig", "write-kubeconfig-group", "default-local-storage-path":
		return "what persists on a node, and where, is decided by the image"
	case "docker", "container-runtime-endpoint", "rootless", "snapshotter", "image-service-endpoint":
		return "k3s's own containerd runs the containers"
	}
	return secretKey(key)
}

// secretKey recognises keys whose values do not belong into git.
func secretKey(key string) string {
	for _, part := range []string{"token", "secret-key", "access-key", "password", "vpn-auth"} {
		if strings.Contains(key, part) {
			return "its value is a secret: bootstrap init-secrets makes what must be born once, the rest belongs in the environment's SOPS file"
		}
	}
	if strings.HasPrefix(key, "datastore-") {
		return "the datastore is the embedded etcd"
	}
	return ""
}
