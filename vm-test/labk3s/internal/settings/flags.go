package settings

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway/slipway/vm-test/labk3s/internal/configfile"
)

// Parse reads the settings of a role from its arguments, the environment (K3S_TOKEN
// and its like) and the configuration files. Flags win over
// files; those that may be repeated add to them.
func Parse(role string, args []string) (Settings, error) {
	s := Settings{Role: role}
	fs := flags(&s)
	fromFile, err := configfile.Flags(configFile(args))
	if err != nil {
		return s, err
	}
	all := slices.Concat(fromEnvironment(fs), known(fs, fromFile), args)
	if err := fs.Parse(all); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("%q is not a flag", fs.Arg(0))
	}
	for _, list := range []*[]string{&s.SANs, &s.Disable} {
		*list = splitCommas(*list)
	}
	warnIgnored(fs)
	return s, s.complete()
}

func flags(s *Settings) *pflag.FlagSet {
	fs := pflag.NewFlagSet("k3s "+s.Role, pflag.ContinueOnError)
	fs.SortFlags = false
	nodeFlags(fs, s)
	if s.Role != Agent {
		clusterFlags(fs, s)
		componentFlags(fs, s)
		snapshotFlags(fs, s)
	}
	ignoredFlags(fs)
	return fs
}

// nodeFlags are the flags of servers and agents.
func nodeFlags(fs *pflag.FlagSet, s *Settings) {
	fs.StringP("config", "c", configfile.Default, "configuration file, beside a directory of the same name and .d")
	fs.BoolVar(&s.Debug, "debug", false, "say more")
	fs.IntVarP(&s.V, "v", "v", 0, "verbosity of the parts of Kubernetes")
	fs.StringVarP(&s.DataDir, "data-dir", "d", defaultDataDir, "directory of all state")
	fs.StringVarP(&s.Token, "token", "t", "", "secret with which nodes join")
	fs.StringVar(&s.TokenFile, "token-file", "", "file with that secret")
	fs.StringVarP(&s.Join, "server", "s", "", "URL of a server, to join its cluster")
	fs.StringVar(&s.NodeName, "node-name", "", "name of the node (the host's name)")
	fs.StringVarP(&s.NodeIP, "node-ip", "i", "", "address of the node")
	fs.StringVar(&s.NodeExternalIP, "node-external-ip", "", "address of the node for others")
	fs.StringArrayVar(&s.Labels, "node-label", nil, "label of the node")
	fs.StringArrayVar(&s.Taints, "node-taint", nil, "taint of the node")
	fs.StringVar(&s.ResolvConf, "resolv-conf", "", "resolv.conf of pods")
	fs.StringVar(&s.PauseImage, "pause-image", "rancher/mirrored-pause:3.6", "image of pods' sandboxes")
	fs.StringVar(&s.Snapshotter, "snapshotter", "overlayfs", "containerd's snapshotter")
	fs.StringVar(&s.RuntimeEndpoint, "container-runtime-endpoint", "", "socket of a CRI that is there already")
	fs.StringArrayVar(&s.KubeletArgs, "kubelet-arg", nil, "flag of the kubelet, name=value")
	fs.BoolVar(&s.ProtectKernelDefaults, "protect-kernel-defaults", false, "refuse to start when sysctls are not the kubelet's")
	fs.IntVar(&s.BalancerPort, "lb-server-port", 6444, "local port of an agent behind which the servers are")
}

// clusterFlags are the flags that make or join a cluster.
func clusterFlags(fs *pflag.FlagSet, s *Settings) {
	fs.StringVar(&s.AgentToken, "agent-token", "", "secret with which agents join")
	fs.StringVar(&s.AgentTokenFile, "agent-token-file", "", "file with that secret")
	fs.BoolVar(&s.ClusterInit, "cluster-init", false, "start a new cluster")
	fs.BoolVar(&s.ClusterReset, "cluster-reset", false, "forget all other members of etcd")
	fs.StringVar(&s.BindAddress, "bind-address", "", "address to listen on (all)")
	fs.IntVar(&s.Port, "https-listen-port", 6443, "port of the API")
	fs.StringVar(&s.AdvertiseAddress, "advertise-address", "", "address of the API (node-ip)")
	fs.StringArrayVar(&s.SANs, "tls-san", nil, "further name or address of the API")
	fs.StringVar(&s.ClusterCIDR, "cluster-cidr", "10.42.0.0/16", "addresses of pods")
	fs.StringVar(&s.ServiceCIDR, "service-cidr", "10.43.0.0/16", "addresses of services")
	fs.StringVar(&s.NodePorts, "service-node-port-range", "30000-32767", "ports of services on nodes")
	fs.StringVar(&s.ClusterDNS, "cluster-dns", "", "address of the DNS service (the tenth of service-cidr)")
	fs.StringVar(&s.ClusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster")
	fs.StringVar(&s.FlannelBackend, "flannel-backend", "vxlan", "must be none here")
	fs.StringVar(&s.EgressSelectorMode, "egress-selector-mode", "agent", "compared between servers only")
	fs.StringVarP(&s.Kubeconfig, "write-kubeconfig", "o", "/etc/rancher/k3s/k3s.yaml", "kubeconfig to write")
	fs.StringVar(&s.KubeconfigMode, "write-kubeconfig-mode", "0600", "its mode")
	fs.StringVar(&s.KubeconfigGroup, "write-kubeconfig-group", "", "its group")
}

// componentFlags are the flags of what runs in a server.
func componentFlags(fs *pflag.FlagSet, s *Settings) {
	fs.StringArrayVar(&s.APIServerArgs, "kube-apiserver-arg", nil, "flag of kube-apiserver, name=value")
	fs.StringArrayVar(&s.EtcdArgs, "etcd-arg", nil, "heartbeat-interval=ms or election-timeout=ms")
	fs.StringArrayVar(&s.ControllerArgs, "kube-controller-manager-arg", nil, "flag of kube-controller-manager, name=value")
	fs.StringArrayVar(&s.SchedulerArgs, "kube-scheduler-arg", nil, "flag of kube-scheduler, name=value")
	fs.StringArrayVar(&s.Disable, "disable", nil, "packaged component that is not wanted")
	fs.BoolVar(&s.DisableAgent, "disable-agent", false, "run no kubelet")
	fs.BoolVar(&s.DisableScheduler, "disable-scheduler", false, "run no scheduler")
	fs.BoolVar(&s.DisableCCM, "disable-cloud-controller", false, "there is none here; compared between servers only")
	fs.BoolVar(&s.DisableHelm, "disable-helm-controller", false, "there is none here; compared between servers only")
	fs.BoolVar(&s.DisableKubeProxy, "disable-kube-proxy", false, "must be set here")
	fs.BoolVar(&s.DisableNetworkPolicy, "disable-network-policy", false, "must be set here")
	fs.BoolVar(&s.SecretsEncryption, "secrets-encryption", false, "encrypt Secrets in etcd")
	fs.StringVar(&s.SystemRegistry, "system-default-registry", "", "registry of packaged components' images")
}

func snapshotFlags(fs *pflag.FlagSet, s *Settings) {
	fs.BoolVar(&s.ExposeEtcdMetrics, "etcd-expose-metrics", false, "let others see etcd's metrics")
	fs.BoolVar(&s.DisableSnapshots, "etcd-disable-snapshots", false, "take no snapshots by the clock")
	fs.StringVar(&s.SnapshotName, "etcd-snapshot-name", "etcd-snapshot", "first part of snapshots' names")
	fs.StringVar(&s.SnapshotCron, "etcd-snapshot-schedule-cron", "0 */12 * * *", "when snapshots are taken")
	fs.IntVar(&s.SnapshotRetention, "etcd-snapshot-retention", 5, "how many are kept")
	fs.StringVar(&s.SnapshotDir, "etcd-snapshot-dir", "", "where they are kept (server/db/snapshots)")
	fs.BoolVar(&s.SnapshotCompress, "etcd-snapshot-compress", false, "compress them")
}

// ignored are flags of k3s for which there is nothing here that could heed them.
var ignored = []string{
	"advertise-port", "agent-config", "airgap-extra-registry", "alsologtostderr", "bundled-bin", "cluster-reset-restore-path",
	"datastore-cafile", "datastore-certfile", "datastore-endpoint", "datastore-keyfile", "default-local-storage-path",
	"default-runtime", "disable-apiserver", "disable-controller-manager", "disable-default-registry-endpoint", "disable-etcd",
	"docker", "embedded-registry", "enable-pprof", "etcd-s3", "flannel-cni-conf", "flannel-conf", "flannel-external-ip",
	"flannel-iface", "flannel-ipv6-masq", "helm-job-image", "image-credential-provider-bin-dir",
	"image-credential-provider-config", "image-service-endpoint", "kube-cloud-controller-manager-arg", "kube-proxy-arg",
	"log", "node-internal-dns", "node-external-dns", "nonroot-devices", "prefer-bundled-bin", "private-registry", "rootless",
	"selinux", "servicelb-namespace", "supervisor-metrics", "tls-san-security", "vmodule", "vpn-auth", "vpn-auth-file",
	"with-node-id", "write-kubeconfig-embed",
}

func ignoredFlags(fs *pflag.FlagSet) {
	for _, name := range ignored {
		if fs.Lookup(name) == nil {
			fs.StringArray(name, nil, "a flag of k3s that labk3s ignores")
			f := fs.Lookup(name)
			f.Hidden, f.NoOptDefVal = true, "true"
		}
	}
}

func warnIgnored(fs *pflag.FlagSet) {
	for _, name := range ignored {
		if fs.Changed(name) {
			slog.Warn("labk3s ignores this flag of k3s", "flag", name)
		}
	}
}

// known leaves out what is in the files and is no flag of the role, as k3s does: one
// file may serve several commands.
func known(fs *pflag.FlagSet, args []string) []string {
	var out []string
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case len(name) > 1 && fs.Lookup(name) != nil, len(name) == 1 && fs.ShorthandLookup(name) != nil:
			out = append(out, arg)
		default:
			slog.Warn("Unknown flag found in config.yaml, skipping", "flag", name)
		}
	}
	return out
}

// variables are the environment variables that k3s reads, and their flags.
var variables = []struct{ name, flag string }{
	{"K3S_TOKEN", "token"},
	{"K3S_TOKEN_FILE", "token-file"},
	{"K3S_AGENT_TOKEN", "agent-token"},
	{"K3S_URL", "server"},
	{"K3S_NODE_NAME", "node-name"},
	{"K3S_DATA_DIR", "data-dir"},
	{"K3S_CLUSTER_INIT", "cluster-init"},
	{"K3S_KUBECONFIG_OUTPUT", "write-kubeconfig"},
	{"K3S_KUBECONFIG_MODE", "write-kubeconfig-mode"},
	{"K3S_RESOLV_CONF", "resolv-conf"},
}

func fromEnvironment(fs *pflag.FlagSet) []string {
	var out []string
	for _, v := range variables {
		if value := os.Getenv(v.name); value != "" && fs.Lookup(v.flag) != nil {
			out = append(out, "--"+v.flag+"="+value)
		}
	}
	return out
}

// configFile finds the file before the flags can be parsed, because it has flags.
func configFile(args []string) string {
	if name := os.Getenv("K3S_CONFIG_FILE"); name != "" {
		return name
	}
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if name != "--config" && name != "-c" {
			continue
		}
		if joined {
			return value
		}
		if i+1 < len(args) {
			return args[i+1]
		}
	}
	return configfile.Default
}

func splitCommas(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// routedAddress is the address from which this host reaches others by default.
// Nothing is sent: a UDP socket only asks for the route.
func routedAddress() (string, error) {
	conn, err := net.Dial("udp", "192.0.2.1:9")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
