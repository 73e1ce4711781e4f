// Package cluster holds the words that everybody talks about: a cluster, its
// nodes, their disks and networks, as an author wants them.
//
// The types carry three struct tags that the profile package reads: yaml names
// the key, scope:"env" marks what an environment's overlay may set (everything
// else belongs to the base; what is inside an env key is env too), and doc is
// the sentence that the reference and the JSON Schema show. need:"yes" marks a
// key that must be given, default is the text that stands in for an absent key,
// form names the shape of a text (of each item in lists and maps; keyform of a
// map's keys), see package form. Observed state never enters these types.
package cluster

import (
	"net/netip"
	"path"
)

// Cluster is one environment: the base profile with one overlay applied.
type Cluster struct {
	Environment string     `yaml:"environment" scope:"env" need:"yes" form:"label" doc:"Name of this environment, in file names and logs."`
	Status      Status     `yaml:"status" scope:"env" need:"yes" doc:"design-only profiles can be validated, planned and built, but nothing is armed, imaged or bootstrapped."`
	Substrate   Substrate  `yaml:"substrate" scope:"env" need:"yes" doc:"What the nodes run on; chooses the kernel and firmware flavour."`
	Name        string     `yaml:"name" need:"yes" form:"label" doc:"Cluster name, a DNS label."`
	Nodes       []Node     `yaml:"nodes" scope:"env" need:"yes" doc:"The nodes of the cluster."`
	Network     Network    `yaml:"network" need:"yes" doc:"Address ranges; all are checked to be disjoint."`
	Access      Access     `yaml:"access" need:"yes" doc:"Who may log in to a node."`
	System      System     `yaml:"system" doc:"The operating system of every node."`
	Time        Time       `yaml:"time" scope:"env" doc:"Time zone and time servers."`
	Proxy       Proxy      `yaml:"proxy" scope:"env" doc:"HTTP proxies of the nodes."`
	Registries  []Registry `yaml:"registries" scope:"env" doc:"Container registries and their mirrors."`
	Image       Image      `yaml:"image" doc:"How the image is laid out."`
	Debian      Debian     `yaml:"debian" need:"yes" doc:"Where the packages of the image come from."`
	Sources     Sources    `yaml:"sources" scope:"env" doc:"Where charts, manifests and binaries come from."`
	K3s         K3s        `yaml:"k3s" need:"yes" doc:"Kubernetes distribution."`
	Cilium      Cilium     `yaml:"cilium" need:"yes" doc:"Container network."`
	Longhorn    Longhorn   `yaml:"longhorn" need:"yes" doc:"Replicated storage."`
	Flux        Flux       `yaml:"flux" need:"yes" doc:"GitOps."`
}

// Status says what may be done with a profile.
type Status string

// The statuses of a profile.
const (
	StatusActive     Status = "active"
	StatusDesignOnly Status = "design-only"
)

// Values lists what a Status may be.
func (Status) Values() []string { return []string{string(StatusActive), string(StatusDesignOnly)} }

// Substrate is what the nodes of an environment run on.
type Substrate string

// The substrates. They choose the kernel package, firmware and guest agents.
const (
	SubstrateVM    Substrate = "vm"
	SubstrateMetal Substrate = "metal"
)

// Values lists what a Substrate may be.
func (Substrate) Values() []string { return []string{string(SubstrateVM), string(SubstrateMetal)} }

// Network holds the address ranges of a cluster.
type Network struct {
	LAN              netip.Prefix `yaml:"lan" scope:"env" need:"yes" form:"cidr" doc:"The network the nodes' addresses are in."`
	Gateway          netip.Addr   `yaml:"gateway" scope:"env" form:"address" doc:"Default gateway of nodes with static addresses."`
	DNS              []netip.Addr `yaml:"dns" scope:"env" form:"address" doc:"Name servers of nodes with static addresses."`
	DNSZone          string       `yaml:"dnsZone" scope:"env" form:"domain" doc:"DNS zone of the nodes and services."`
	APIVIP           netip.Addr   `yaml:"apiVIP" scope:"env" form:"address" doc:"Virtual address of the Kubernetes API; optional."`
	LoadBalancerPool netip.Prefix `yaml:"loadBalancerPool" scope:"env" form:"cidr" doc:"Addresses for Services of type LoadBalancer."`
	PodCIDR          netip.Prefix `yaml:"podCIDR" need:"yes" form:"cidr" doc:"Addresses of pods."`
	ServiceCIDR      netip.Prefix `yaml:"serviceCIDR" need:"yes" form:"cidr" doc:"Addresses of Services."`
	ClusterDNS       netip.Addr   `yaml:"clusterDNS" need:"yes" form:"address" doc:"Address of CoreDNS, inside serviceCIDR."`
	ClusterDomain    string       `yaml:"clusterDomain" form:"domain" default:"cluster.local" doc:"DNS domain inside the cluster."`
	VPN              []VPN        `yaml:"vpn" scope:"env" doc:"WireGuard peers; keys are references to secrets, never values."`
}

// VPN is one WireGuard tunnel of the nodes.
type VPN struct {
	Name          string         `yaml:"name" need:"yes" form:"interface" doc:"Interface name, such as wg0."`
	Endpoint      string         `yaml:"endpoint" need:"yes" form:"hostport" doc:"host:port of the peer."`
	PublicKey     string         `yaml:"publicKey" need:"yes" form:"wireguard" doc:"Public key of the peer, base64."`
	PrivateKeyRef string         `yaml:"privateKeyRef" need:"yes" form:"secretref" doc:"Key in the environment's SOPS file that holds the private key."`
	AllowedIPs    []netip.Prefix `yaml:"allowedIPs" need:"yes" form:"cidr" doc:"Networks behind the peer."`
}

// Access says who may log in to a node.
type Access struct {
	Users []User `yaml:"users" scope:"env" need:"yes" doc:"Accounts made by cloud-init; they log in by key only."`
}

// User is an account on every node.
type User struct {
	Name string   `yaml:"name" need:"yes" form:"login" doc:"Login name."`
	Keys []string `yaml:"keys" need:"yes" form:"sshkey" doc:"Public SSH keys, one authorized_keys line each."`
	Sudo bool     `yaml:"sudo" doc:"May run everything as root without a password."`
}

// System is what the operating system of every node holds.
type System struct {
	Packages     []string          `yaml:"packages" form:"package" doc:"Debian packages beyond the built-in sets."`
	Modules      []string          `yaml:"modules" form:"module" doc:"Kernel modules loaded at boot."`
	Sysctls      map[string]string `yaml:"sysctls" keyform:"sysctl" form:"line" doc:"Kernel parameters, as in sysctl.d."`
	CommandLine  []string          `yaml:"commandLine" form:"kernelword" doc:"Words added to the kernel command line."`
	Locale       string            `yaml:"locale" form:"locale" default:"C.UTF-8" doc:"System locale."`
	JournalMax   Size              `yaml:"journalMax" scope:"env" form:"size" default:"256MiB" doc:"Most that the journal may occupy."`
	RescueShell  bool              `yaml:"rescueShell" scope:"env" doc:"Whether a node that cannot boot offers a root shell on its console."`
	RebootAfter  int               `yaml:"rebootAfter" default:"60" doc:"Seconds after which a node that cannot boot tries again; 0 means never."`
	ExtraConsole []string          `yaml:"consoles" scope:"env" form:"console" doc:"Kernel consoles, such as ttyS0,115200; the last one is /dev/console."`
}

// Time is the clock of the nodes.
type Time struct {
	Zone    string   `yaml:"zone" form:"zone" default:"UTC" doc:"Time zone, such as UTC or Europe/Berlin."`
	Servers []string `yaml:"servers" form:"host" doc:"NTP servers; empty means what DHCP names."`
}

// Proxy holds the HTTP proxies of the nodes.
type Proxy struct {
	HTTP    string   `yaml:"http" form:"proxy" doc:"Proxy for http URLs."`
	HTTPS   string   `yaml:"https" form:"proxy" doc:"Proxy for https URLs."`
	NoProxy []string `yaml:"noProxy" form:"noproxy" doc:"Hosts, domains and networks reached directly; cluster ranges are always added."`
}

// Registry maps a container registry to mirrors.
type Registry struct {
	Name    string   `yaml:"name" need:"yes" form:"registry" doc:"Registry host, as in image references."`
	Mirrors []string `yaml:"mirrors" need:"yes" form:"url" doc:"Mirror endpoints, tried in order."`
}

// Image says how the image is laid out.
type Image struct {
	SlotSize Size `yaml:"slotSize" scope:"env" form:"size" default:"auto" doc:"Size of slots A and B; auto is content plus head room."`
	ESPSize  Size `yaml:"espSize" form:"size" default:"512MiB" doc:"Size of the EFI system partition, at least 260MiB."`
}

// Debian says where packages come from.
type Debian struct {
	Suite      string   `yaml:"suite" form:"suite" default:"trixie" doc:"Debian release by code name."`
	Components []string `yaml:"components" need:"yes" form:"component" doc:"Archive components."`
	Mirror     string   `yaml:"mirror" scope:"env" form:"url" doc:"Base URL of the archive; empty means the one the build host's apt uses."`
}

// Sources says where inputs come from that are not Debian packages.
type Sources struct {
	From  Origin            `yaml:"from" default:"upstream" doc:"upstream takes what the projects release; gomodule takes the same charts and manifests out of the projects' Go modules, for networks that reach only a module proxy."`
	Files map[string]string `yaml:"files" keyform:"label" form:"line" doc:"Inputs taken from this machine instead: name, such as k3s, to path, relative to the profile."`
}

// Origin is where charts and manifests come from.
type Origin string

// The origins of charts and manifests.
const (
	OriginUpstream Origin = "upstream"
	OriginGoModule Origin = "gomodule"
)

// Values lists what an Origin may be.
func (Origin) Values() []string { return []string{string(OriginUpstream), string(OriginGoModule)} }

// K3s is the Kubernetes distribution.
type K3s struct {
	Version string            `yaml:"version" need:"yes" form:"k3sversion" doc:"k3s version, such as v1.34.4+k3s1."`
	Config  map[string]string `yaml:"config" keyform:"k3skey" form:"line" doc:"More keys of k3s's config.yaml; keys that Slipway owns are refused."`
}

// Cilium is the container network.
type Cilium struct {
	Version           string `yaml:"version" need:"yes" form:"version" doc:"Cilium version."`
	GatewayAPI        bool   `yaml:"gatewayAPI" doc:"Whether Cilium serves the Gateway API."`
	GatewayAPIVersion string `yaml:"gatewayAPIVersion" form:"version" default:"1.5.1" doc:"Version of the Gateway API's resource definitions; each Cilium release names the one it serves."`
	Hubble            bool   `yaml:"hubble" scope:"env" doc:"Whether Hubble runs."`
	Envoy             bool   `yaml:"envoy" scope:"env" default:"true" doc:"Whether Envoy runs; without it there are no policies for HTTP and the like, and the Gateway API is not served."`
}

// Longhorn is the replicated storage.
type Longhorn struct {
	Enabled  bool   `yaml:"enabled" doc:"Whether Longhorn is installed."`
	Version  string `yaml:"version" need:"yes" form:"version" doc:"Longhorn version."`
	Replicas int    `yaml:"replicas" scope:"env" default:"3" doc:"Replicas of a volume, at most the number of nodes."`
	DataPath string `yaml:"dataPath" form:"path" default:"/var/lib/longhorn" doc:"Where data disks are mounted."`
}

// DataMount is where the data disk of that name is mounted on its node.
func (l Longhorn) DataMount(disk string) string { return path.Join(l.DataPath, disk) }

// Flux is the GitOps hand-over.
type Flux struct {
	Version string `yaml:"version" need:"yes" form:"version" doc:"Flux version."`
	URL     string `yaml:"url" scope:"env" form:"giturl" doc:"Git repository, ssh or https."`
	Branch  string `yaml:"branch" scope:"env" form:"branch" default:"main" doc:"Branch to follow."`
	Path    string `yaml:"path" scope:"env" form:"repopath" doc:"Directory of this cluster in the repository."`
}

// Servers are the nodes that run the control plane, in the order of the profile.
func (c Cluster) Servers() []Node {
	var out []Node
	for _, n := range c.Nodes {
		if n.Role == RoleServer {
			out = append(out, n)
		}
	}
	return out
}

// ServesGateways reports whether Cilium serves the Gateway API: it does so with Envoy.
func (c Cluster) ServesGateways() bool { return c.Cilium.GatewayAPI && c.Cilium.Envoy }
