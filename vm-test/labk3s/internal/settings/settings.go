// Package settings reads what `k3s server` and `k3s agent` are told: flags, the
// environment and the configuration files, with k3s's names and defaults.
package settings

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Settings are the settings of a node. Lists of k3s that may be given with commas
// are split already.
type Settings struct {
	Role    string // Server, Agent or Snapshot
	DataDir string
	Debug   bool
	V       int // verbosity of the parts of Kubernetes

	Token, TokenFile           string
	AgentToken, AgentTokenFile string
	Join                       string // URL of a living server
	ClusterInit, ClusterReset  bool

	BindAddress      string
	Port             int
	AdvertiseAddress string
	SANs             []string

	ClusterCIDR, ServiceCIDR string
	NodePorts                string
	ClusterDNS               string
	ClusterDomain            string
	FlannelBackend           string

	Kubeconfig, KubeconfigMode, KubeconfigGroup string

	APIServerArgs, ControllerArgs, SchedulerArgs, EtcdArgs, KubeletArgs []string

	DisableSnapshots  bool
	SnapshotName      string
	SnapshotCron      string
	SnapshotRetention int
	SnapshotDir       string
	SnapshotCompress  bool
	ExposeEtcdMetrics bool

	Disable               []string
	DisableAgent          bool
	DisableScheduler      bool
	DisableCCM            bool
	DisableHelm           bool
	DisableKubeProxy      bool
	DisableNetworkPolicy  bool
	SecretsEncryption     bool
	EgressSelectorMode    string
	ProtectKernelDefaults bool

	NodeName        string
	NodeIP          string
	NodeExternalIP  string
	Labels, Taints  []string
	ResolvConf      string
	PauseImage      string
	Snapshotter     string
	RuntimeEndpoint string
	BalancerPort    int
	SystemRegistry  string
	Heartbeat       time.Duration // of etcd; k3s has no flag for it, etcd-arg has
	Election        time.Duration
	PasswordDir     string // /etc/rancher/node
}

// The roles: what is to be run with the settings. Snapshot reads those of a server and
// wants only to know where things are.
const (
	Server   = "server"
	Agent    = "agent"
	Snapshot = "etcd-snapshot"
)

// The directories of a node that have no flag.
const (
	defaultDataDir = "/var/lib/rancher/k3s"
	passwordDir    = "/etc/rancher/node"
)

// ServerDir is the directory of what servers keep.
func (s Settings) ServerDir(elem ...string) string {
	return filepath.Join(append([]string{s.DataDir, "server"}, elem...)...)
}

// AgentDir is the directory of what the agent of a node keeps.
func (s Settings) AgentDir(elem ...string) string {
	return filepath.Join(append([]string{s.DataDir, "agent"}, elem...)...)
}

// complete fills in what follows from the rest, and refuses what cannot be.
func (s *Settings) complete() error {
	if s.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the node has no name: %w", err)
		}
		s.NodeName = name
	}
	s.NodeName = strings.ToLower(s.NodeName)
	if s.SnapshotDir == "" {
		s.SnapshotDir = s.ServerDir("db", "snapshots")
	}
	if s.Role == Snapshot {
		return nil
	}
	if err := s.readTokens(); err != nil {
		return err
	}
	if s.NodeIP == "" {
		ip, err := routedAddress()
		if err != nil {
			return fmt.Errorf("the node has no address: %w; set node-ip", err)
		}
		s.NodeIP = ip
	}
	if _, err := netip.ParseAddr(s.NodeIP); err != nil {
		return fmt.Errorf("node-ip: %w", err)
	}
	if s.AdvertiseAddress == "" {
		s.AdvertiseAddress = s.NodeIP
	}
	s.PasswordDir = passwordDir
	if s.Role == Agent {
		return s.completeAgent()
	}
	return s.completeServer()
}

func (s *Settings) completeAgent() error {
	if s.Join == "" {
		return fmt.Errorf("--server is required")
	}
	if s.Token == "" {
		return fmt.Errorf("--token is required")
	}
	return nil
}

// completeServer also refuses what this stand-in has not got and k3s would start:
// a cluster without it would look right and not work.
func (s *Settings) completeServer() error {
	switch {
	case s.FlannelBackend != "none":
		return fmt.Errorf("labk3s has no flannel: set flannel-backend to none")
	case !s.DisableKubeProxy:
		return fmt.Errorf("labk3s has no kube-proxy: set disable-kube-proxy")
	case !s.DisableNetworkPolicy:
		return fmt.Errorf("labk3s has no network policy controller: set disable-network-policy")
	}
	prefix, err := netip.ParsePrefix(s.ServiceCIDR)
	if err != nil {
		return fmt.Errorf("service-cidr: %w", err)
	}
	if s.ClusterDNS == "" {
		s.ClusterDNS = nth(prefix, 10).String()
	}
	return s.etcdTimes()
}

// ServiceIP is the address of the service "kubernetes", the first of its range.
func (s Settings) ServiceIP() string {
	prefix, err := netip.ParsePrefix(s.ServiceCIDR)
	if err != nil {
		return ""
	}
	return nth(prefix, 1).String()
}

func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

func (s *Settings) readTokens() error {
	for _, t := range []struct {
		value *string
		file  string
	}{{&s.Token, s.TokenFile}, {&s.AgentToken, s.AgentTokenFile}} {
		if *t.value != "" || t.file == "" {
			continue
		}
		text, err := os.ReadFile(t.file)
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		*t.value = strings.TrimSpace(string(text))
	}
	return nil
}

// The times that k3s gives etcd; they suit slow and emulated machines too.
const (
	heartbeat = 500 * time.Millisecond
	election  = 5 * time.Second
)

// etcdTimes reads the two arguments of etcd that a lab may want to change. Others
// are refused rather than forgotten.
func (s *Settings) etcdTimes() error {
	s.Heartbeat, s.Election = heartbeat, election
	for _, arg := range s.EtcdArgs {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		ms, err := time.ParseDuration(value + "ms")
		switch {
		case err != nil:
			return fmt.Errorf("etcd-arg %s: not a number of milliseconds", arg)
		case name == "heartbeat-interval":
			s.Heartbeat = ms
		case name == "election-timeout":
			s.Election = ms
		default:
			return fmt.Errorf("etcd-arg %s: labk3s does not know it", arg)
		}
	}
	return nil
}
