package k3sconf

// Owner says who sets a key of k3s's configuration and why nobody else does, or is
// "" for one that a profile or a drop-in may set: keys that must be equal on all
// servers, and keys of a node that follow from the profile. Short and former names
// have the owner of the key that they stand for.
func Owner(key string) string {
	if full, ok := otherNames[key]; ok {
		key = full
	}
	switch key {
	case "disable":
		return "traefik, servicelb and local-storage are always disabled; what else runs is for Flux to say"
	case "disable-network-policy", "network-policy", "disable-kube-proxy", "kube-proxy":
		return "Cilium takes the place of kube-proxy and of the network policy controller, always; these are keys of their own, never items of disable"
	case "flannel-backend", "flannel-conf", "flannel-iface", "flannel-ipv6-masq", "flannel-external-ip", "flannel-cni-conf", "vpn-auth", "vpn-auth-file":
		return "the container network is Cilium"
	case "cluster-init", "server", "cluster-reset", "cluster-reset-restore-path":
		return "bootstrap decides which server starts a cluster and which ones join, by asking the nodes"
	case "token", "token-file", "agent-token", "agent-token-file":
		return "the token comes from the environment's secrets, and lies in a file of its own"
	case "datastore-endpoint", "datastore-cafile", "datastore-certfile", "datastore-keyfile":
		return "the datastore is the embedded etcd"
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
	case "node-ip", "node-name", "node-external-ip", "advertise-address", "bind-address", "advertise-port", "https-listen-port", "lb-server-port", "with-node-id":
		return "it follows from nodes[]: name, and the first address of the first interface"
	case "private-registry":
		return "write mirrors to registries"
	default:
		return ownerOfSystem(key)
	}
}

func ownerOfSystem(key string) string {
	switch key {
	case "secrets-encryption", "disable-helm-controller", "disable-cloud-controller", "disable-apiserver", "disable-etcd", "disable-agent",
		"disable-scheduler", "disable-controller-manager", "egress-selector-mode":
		return "it must be equal on all servers and never change; bootstrap sets it"
	case "data-dir", "config", "write-kubeconfig", "write-kubeconfig-group", "default-local-storage-path":
		return "what persists on a node, and where, is decided by the image"
	case "docker", "container-runtime-endpoint", "rootless", "snapshotter", "image-service-endpoint":
		return "k3s's own containerd runs the containers"
	}
	return ""
}
