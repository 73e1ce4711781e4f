package rule

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/cluster"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }

func node(name, last string) cluster.Node {
	return cluster.Node{
		Name: name, Role: cluster.RoleServer, Serial: "PC-" + name,
		Interfaces: []cluster.Interface{{MAC: cluster.MAC("02:00:00:00:00:" + last), Addresses: []netip.Prefix{prefix("192.168.1." + last + "/24")}}},
		System:     cluster.Selector{Serial: "SYS-" + name},
		Data:       []cluster.DataDisk{{Name: "data", Selector: cluster.Selector{WWN: "0x50000000000000" + last}, Policy: cluster.PolicyKeep}},
	}
}

// good is a cluster that breaks no rule.
func good() *cluster.Cluster {
	return &cluster.Cluster{
		Environment: "prod", Status: cluster.StatusActive, Substrate: cluster.SubstrateMetal, Name: "harbor",
		Nodes: []cluster.Node{node("n1", "11"), node("n2", "12"), node("n3", "13")},
		Network: cluster.Network{
			LAN: prefix("192.168.1.0/24"), Gateway: addr("192.168.1.1"), DNS: []netip.Addr{addr("192.168.1.1")}, APIVIP: addr("192.168.1.10"),
			LoadBalancerPool: prefix("192.168.1.192/26"), PodCIDR: prefix("10.42.0.0/16"), ServiceCIDR: prefix("10.43.0.0/16"),
			ClusterDNS: addr("10.43.0.10"), ClusterDomain: "cluster.local",
			VPN: []cluster.VPN{{Name: "wg0", PublicKey: "A", AllowedIPs: []netip.Prefix{prefix("192.168.9.0/24")}}},
		},
		Access:   cluster.Access{Users: []cluster.User{{Name: "ada", Sudo: true, Keys: []string{"ssh-ed25519 AAAA ada"}}}},
		System:   cluster.System{Sysctls: map[string]string{"net.ipv4.ip_forward": "1"}, RebootAfter: 60},
		Image:    cluster.Image{SlotSize: cluster.SizeAuto, ESPSize: 512 << 20},
		Debian:   cluster.Debian{Suite: "trixie", Components: []string{"main", "non-free-firmware"}},
		Longhorn: cluster.Longhorn{Enabled: true, Replicas: 3},
		Flux:     cluster.Flux{URL: "ssh://git@a/b", Path: "clusters/prod"},
	}
}

func check(c *cluster.Cluster, partial bool) (paths, said []string) {
	Check(c, partial, func(path, message, hint string) {
		paths = append(paths, path)
		said = append(said, path+": "+message+" | "+hint)
	})
	return paths, said
}

func TestGoodCluster(t *testing.T) {
	if _, said := check(good(), false); len(said) > 0 {
		t.Error(said)
	}
}

// Rules must say nothing about what is not there, and must not panic on it.
func TestEmptyCluster(t *testing.T) {
	if _, said := check(&cluster.Cluster{}, true); len(said) > 0 {
		t.Error(said)
	}
	check(&cluster.Cluster{Nodes: make([]cluster.Node, 3)}, false)
	check(&cluster.Cluster{Nodes: []cluster.Node{{Interfaces: []cluster.Interface{{Addresses: make([]netip.Prefix, 2)}}}}}, false)
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name   string
		mutate func(*cluster.Cluster)
		path   string // that is reported
		want   string // part of message or hint
	}{
		{"reserved node", func(c *cluster.Cluster) { c.Nodes[0].Name = "localhost" }, "nodes[0].name", "cannot"},
		{"reserved environment", func(c *cluster.Cluster) { c.Environment = "schema" }, "environment", "another file"},
		{"node twice", func(c *cluster.Cluster) { c.Nodes[2].Name = "n1" }, "nodes[2].name", "nodes[0]"},
		{"machine twice", func(c *cluster.Cluster) { c.Nodes[2].Serial = c.Nodes[1].Serial }, "nodes[2].serial", "nodes[1]"},
		{"two servers", func(c *cluster.Cluster) { c.Nodes[2].Role = cluster.RoleAgent }, "nodes[1].role", "majority"},
		{"four servers", func(c *cluster.Cluster) { c.Nodes = append(c.Nodes, node("n4", "14")) }, "nodes[3].role", "3 or 5"},
		{"no server", func(c *cluster.Cluster) { c.Nodes = c.Nodes[:1]; c.Nodes[0].Role = cluster.RoleAgent }, "nodes[0].role", "no node"},
		{"pods and services", func(c *cluster.Cluster) { c.Network.PodCIDR = prefix("10.32.0.0/12") }, "network.serviceCIDR", "overlaps"},
		{"LAN and pods", func(c *cluster.Cluster) { c.Network.PodCIDR = prefix("192.168.0.0/16") }, "network.podCIDR", "overlaps the LAN"},
		{"pool around the LAN", func(c *cluster.Cluster) { c.Network.LoadBalancerPool = prefix("192.168.0.0/16") }, "network.loadBalancerPool", "overlaps the LAN"},
		{"pool in the pods", func(c *cluster.Cluster) { c.Network.LoadBalancerPool = prefix("10.42.1.0/24") }, "network.loadBalancerPool", "pod range"},
		{"VPN and LAN", func(c *cluster.Cluster) { c.Network.VPN[0].AllowedIPs[0] = prefix("192.168.1.0/28") }, "network.vpn[0].allowedIPs[0]", "the LAN"},
		{"VPN to everywhere", func(c *cluster.Cluster) { c.Network.VPN[0].AllowedIPs[0] = prefix("0.0.0.0/0") }, "network.vpn[0].allowedIPs[0]", "internet"},
		{"VPN name", func(c *cluster.Cluster) { c.Network.VPN[0].Name = "eth0" }, "network.vpn[0].name", "others"},
		{"loopback", func(c *cluster.Cluster) { c.Network.PodCIDR = prefix("127.0.0.0/16") }, "network.podCIDR", "loopback"},
		{"IPv6", func(c *cluster.Cluster) { c.Network.APIVIP = addr("fd00::1") }, "network.apiVIP", "IPv4"},
		{"service range too large", func(c *cluster.Cluster) { c.Network.ServiceCIDR = prefix("172.0.0.0/8") }, "network.serviceCIDR", "/12"},
		{"pod range too small", func(c *cluster.Cluster) { c.Network.PodCIDR = prefix("10.42.0.0/25") }, "network.podCIDR", "too small"},
		{"cluster DNS outside", func(c *cluster.Cluster) { c.Network.ClusterDNS = addr("10.44.0.10") }, "network.clusterDNS", "10.43.0.10"},
		{"cluster DNS first", func(c *cluster.Cluster) { c.Network.ClusterDNS = addr("10.43.0.1") }, "network.clusterDNS", "kubernetes"},
		{"cluster DNS last", func(c *cluster.Cluster) { c.Network.ClusterDNS = addr("10.43.255.255") }, "network.clusterDNS", "broadcast"},
		{"zone is cluster domain", func(c *cluster.Cluster) { c.Network.DNSZone = "cluster.local" }, "network.dnsZone", "CoreDNS"},
		{"MAC in two nodes", func(c *cluster.Cluster) { c.Nodes[1].Interfaces[0].MAC = c.Nodes[0].Interfaces[0].MAC }, "nodes[1].interfaces[0].mac", "two nodes"},
		{"MAC twice in a node", func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces = append(c.Nodes[0].Interfaces, cluster.Interface{MAC: c.Nodes[0].Interfaces[0].MAC, DHCP: true})
		}, "nodes[0].interfaces[1].mac", "once for each VLAN"},
		{"DHCP and static", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].DHCP = true }, "nodes[0].interfaces[0]", "both"},
		{"no address", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].Addresses = nil }, "nodes[0].interfaces[0]", "neither"},
		{"VLAN", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].VLAN = -1 }, "nodes[0].interfaces[0].vlan", "4094"},
		{"MTU", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].MTU = 1279 }, "nodes[0].interfaces[0].mtu", "1280"},
		{"outside the LAN", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].Addresses[0] = prefix("192.168.2.11/24") }, "nodes[0].interfaces[0].addresses[0]", "outside"},
		{"network address", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].Addresses[0] = prefix("192.168.1.0/24") }, "nodes[0].interfaces[0].addresses[0]", "broadcast"},
		{"prefix length", func(c *cluster.Cluster) { c.Nodes[0].Interfaces[0].Addresses[0] = prefix("192.168.1.11/25") }, "nodes[0].interfaces[0].addresses[0]", "192.168.1.11/24"},
		{"second in the LAN", func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces = append(c.Nodes[0].Interfaces, cluster.Interface{MAC: "02:00:00:00:00:99", Addresses: []netip.Prefix{prefix("192.168.1.99/24")}})
		}, "nodes[0].interfaces[1].addresses[0]", "second interface"},
		{"second in the pods", func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces = append(c.Nodes[0].Interfaces, cluster.Interface{MAC: "02:00:00:00:00:99", Addresses: []netip.Prefix{prefix("10.42.3.4/24")}})
		}, "nodes[0].interfaces[1].addresses[0]", "pod range"},
		{"address twice", func(c *cluster.Cluster) { c.Nodes[1].Interfaces[0].Addresses = c.Nodes[0].Interfaces[0].Addresses }, "nodes[1].interfaces[0].addresses[0]", "twice"},
		{"gateway outside", func(c *cluster.Cluster) { c.Network.Gateway = addr("192.168.2.1") }, "network.gateway", "outside"},
		{"gateway is a node", func(c *cluster.Cluster) { c.Network.Gateway = addr("192.168.1.12") }, "network.gateway", "n2"},
		{"VIP is a node", func(c *cluster.Cluster) { c.Network.APIVIP = addr("192.168.1.13") }, "network.apiVIP", "n3"},
		{"VIP is the gateway", func(c *cluster.Cluster) { c.Network.APIVIP = c.Network.Gateway }, "network.apiVIP", "gateway"},
		{"VIP is broadcast", func(c *cluster.Cluster) { c.Network.APIVIP = addr("192.168.1.255") }, "network.apiVIP", "broadcast"},
		{"VIP in the pool", func(c *cluster.Cluster) { c.Network.APIVIP = addr("192.168.1.200") }, "network.loadBalancerPool", "virtual address"},
		{"node in the pool", func(c *cluster.Cluster) { c.Network.LoadBalancerPool = prefix("192.168.1.12/31") }, "network.loadBalancerPool", "n3"},
		{"name server in the pods", func(c *cluster.Cluster) { c.Network.DNS = []netip.Addr{addr("10.42.0.53")} }, "network.dns[0]", "pod range"},
		{"time server in the services", func(c *cluster.Cluster) { c.Time.Servers = []string{"ntp.a", "10.43.1.1"} }, "time.servers[1]", "service range"},
		{"disk by model", func(c *cluster.Cluster) { c.Nodes[0].System = cluster.Selector{Model: "x"} }, "nodes[0].systemDisk", "lsblk"},
		{"disk by size", func(c *cluster.Cluster) {
			c.Substrate = cluster.SubstrateVM
			c.Nodes[0].System = cluster.Selector{MinSize: 1}
		}, "nodes[0].systemDisk", "narrow"},
		{"disk bounds", func(c *cluster.Cluster) { c.Nodes[0].System.MinSize, c.Nodes[0].System.MaxSize = 2e12, 1e12 }, "nodes[0].systemDisk.minSize", "2TB is more than maxSize 1TB"},
		{"disk auto", func(c *cluster.Cluster) { c.Nodes[0].System.MinSize = cluster.SizeAuto }, "nodes[0].systemDisk", "auto"},
		{"system is data", func(c *cluster.Cluster) { c.Nodes[0].Data[0].Selector = c.Nodes[0].System }, "nodes[0].dataDisks[0].disk.serial", "same disk"},
		{"disk in two nodes", func(c *cluster.Cluster) { c.Nodes[1].Data[0].Selector = c.Nodes[0].Data[0].Selector }, "nodes[1].dataDisks[0].disk.wwn", "identity of its own"},
		{"one model for two", func(c *cluster.Cluster) {
			c.Substrate = cluster.SubstrateVM
			c.Nodes[0].System, c.Nodes[0].Data[0].Selector = cluster.Selector{Model: "x"}, cluster.Selector{Model: "x"}
		}, "nodes[0].dataDisks[0].disk.model", "same disk"},
		{"data disk name twice", func(c *cluster.Cluster) {
			c.Nodes[0].Data = append(c.Nodes[0].Data, cluster.DataDisk{Name: "data", Selector: cluster.Selector{Serial: "D2"}})
		}, "nodes[0].dataDisks[1].name", "twice"},
		{"no room for slots", func(c *cluster.Cluster) { c.Image.SlotSize, c.Nodes[0].System.MaxSize = 4<<30, 8<<30 }, "nodes[0].systemDisk.maxSize", "two slots"},
		{"root", func(c *cluster.Cluster) { c.Access.Users[0].Name = "root" }, "access.users[0].name", "root does not"},
		{"group of the system", func(c *cluster.Cluster) { c.Access.Users[0].Name = "operator" }, "access.users[0].name", "system itself"},
		{"systemd's account", func(c *cluster.Cluster) { c.Access.Users[0].Name = "systemd-network" }, "access.users[0].name", "system itself"},
		{"user twice", func(c *cluster.Cluster) { c.Access.Users = append(c.Access.Users, c.Access.Users[0]) }, "access.users[1].name", "twice"},
		{"no sudo", func(c *cluster.Cluster) { c.Access.Users[0].Sudo = false }, "access.users", "sudo"},
		{"lab key on metal", func(c *cluster.Cluster) { c.Access.Users[0].Keys = []string{"ssh-ed25519 " + LabKey} }, "access.users[0].keys[0]", "published"},
		{"multipath", func(c *cluster.Cluster) { c.System.Packages = []string{"jq", "multipath-tools"} }, "system.packages[1]", "Longhorn"},
		{"kernel package", func(c *cluster.Cluster) { c.System.Packages = []string{"linux-image-rt-amd64"} }, "system.packages[0]", "kernel"},
		{"no forwarding", func(c *cluster.Cluster) { c.System.Sysctls["net.ipv4.ip_forward"] = "0" }, `system.sysctls["net.ipv4.ip_forward"]`, "pods"},
		{"strict rp_filter", func(c *cluster.Cluster) { c.System.Sysctls["net.ipv4.conf.default.rp_filter"] = "1" }, `system.sysctls["net.ipv4.conf.default.rp_filter"]`, "reverse path"},
		{"hostname sysctl", func(c *cluster.Cluster) { c.System.Sysctls["kernel.hostname"] = "x" }, `system.sysctls["kernel.hostname"]`, "cloud-init"},
		{"root=", func(c *cluster.Cluster) { c.System.CommandLine = []string{"nosmt", "root=/dev/sda"} }, "system.commandLine[1]", "boot entries"},
		{"slipway.", func(c *cluster.Cluster) { c.System.CommandLine = []string{"slipway.x"} }, "system.commandLine[0]", "Slipway's"},
		{"sysctl.", func(c *cluster.Cluster) { c.System.CommandLine = []string{"sysctl.vm.swappiness=1"} }, "system.commandLine[0]", "system.sysctls"},
		{"reboot", func(c *cluster.Cluster) { c.System.RebootAfter = -1 }, "system.rebootAfter", "never"},
		{"journal", func(c *cluster.Cluster) { c.System.JournalMax = cluster.SizeAuto }, "system.journalMax", "16MiB"},
		{"ESP", func(c *cluster.Cluster) { c.Image.ESPSize = 259 << 20 }, "image.espSize", "260MiB"},
		{"ESP of half a MiB", func(c *cluster.Cluster) { c.Image.ESPSize = 300<<20 + 512 }, "image.espSize", "whole MiB"},
		{"slot", func(c *cluster.Cluster) { c.Image.SlotSize = 1 << 20 }, "image.slotSize", "256MiB"},
		{"suite", func(c *cluster.Cluster) { c.Debian.Suite = "bookworm" }, "debian.suite", "trixie"},
		{"no main", func(c *cluster.Cluster) { c.Debian.Components = []string{"non-free-firmware"} }, "debian.components", "main"},
		{"no firmware", func(c *cluster.Cluster) { c.Debian.Components = []string{"main"} }, "debian.components", "firmware"},
		{"exceptions without proxy", func(c *cluster.Cluster) { c.Proxy.NoProxy = []string{"a"} }, "proxy", "without a proxy"},
		{"registry twice", func(c *cluster.Cluster) { c.Registries = []cluster.Registry{{Name: "a"}, {Name: "a"}} }, "registries[1].name", "twice"},
		{"k3s disable", func(c *cluster.Cluster) { c.K3s.Config = map[string]string{"disable": "traefik"} }, "k3s.config.disable", "Flux"},
		{"k3s network-policy", func(c *cluster.Cluster) { c.K3s.Config = map[string]string{"network-policy": "x"} }, "k3s.config.network-policy", "never items of disable"},
		{"k3s token", func(c *cluster.Cluster) { c.K3s.Config = map[string]string{"agent-token": "hunter2"} }, "k3s.config.agent-token", "secret"},
		{"replicas", func(c *cluster.Cluster) { c.Longhorn.Replicas = 4 }, "longhorn.replicas", "at most 3"},
		{"no replicas", func(c *cluster.Cluster) { c.Longhorn.Replicas = 0 }, "longhorn.replicas", "at least one"},
		{"flux without URL", func(c *cluster.Cluster) { c.Flux.URL = "" }, "flux", "without a repository"},
		{"flux without path", func(c *cluster.Cluster) { c.Flux.Path = "" }, "flux", "clusters/prod"},
	} {
		bad := good()
		c.mutate(bad)
		paths, said := check(bad, false)
		if !slices.Contains(paths, c.path) || !strings.Contains(strings.Join(said, "\n"), c.want) {
			t.Errorf("%s: want %s with %q, got\n%s", c.name, c.path, c.want, strings.Join(said, "\n"))
		}
		if strings.Contains(strings.Join(said, "\n"), "hunter2") {
			t.Errorf("%s repeats a secret", c.name)
		}
	}
}

// What looks like a mistake to a rule that is too strict.
func TestAllowed(t *testing.T) {
	for name, mutate := range map[string]func(*cluster.Cluster){
		"one server": func(c *cluster.Cluster) { c.Nodes, c.Longhorn.Replicas = c.Nodes[:1], 1 },
		"an agent": func(c *cluster.Cluster) {
			n := node("n4", "14")
			n.Role = cluster.RoleAgent
			c.Nodes = append(c.Nodes, n)
		},
		"one MAC, two VLANs": func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces = append(c.Nodes[0].Interfaces, cluster.Interface{MAC: c.Nodes[0].Interfaces[0].MAC, VLAN: 30, DHCP: true})
		},
		"pool elsewhere": func(c *cluster.Cluster) { c.Network.LoadBalancerPool = prefix("172.16.0.0/24") },
		"a point-to-point LAN": func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces[0].Addresses = append(c.Nodes[0].Interfaces[0].Addresses, prefix("172.31.0.0/31"))
		},
		"IPv6 besides": func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces[0].Addresses = append(c.Nodes[0].Interfaces[0].Addresses, prefix("fd00::1/64"))
		},
		"no gateway": func(c *cluster.Cluster) { c.Network.Gateway = netip.Addr{} },
		"lab key on a VM": func(c *cluster.Cluster) {
			c.Substrate, c.Access.Users[0].Keys = cluster.SubstrateVM, []string{"ssh-ed25519 " + LabKey}
		},
		"replicas without it":    func(c *cluster.Cluster) { c.Longhorn = cluster.Longhorn{Replicas: 9} },
		"loose rp_filter":        func(c *cluster.Cluster) { c.System.Sysctls["net.ipv4.conf.all.rp_filter"] = "2" },
		"never reboot":           func(c *cluster.Cluster) { c.System.RebootAfter = 0 },
		"no data disk":           func(c *cluster.Cluster) { c.Nodes[0].Data = nil },
		"two disks of one model": func(c *cluster.Cluster) { c.Nodes[0].System.Model, c.Nodes[0].Data[0].Selector.Model = "x", "x" },
		"DHCP": func(c *cluster.Cluster) {
			c.Nodes[0].Interfaces[0] = cluster.Interface{MAC: "02:00:00:00:00:11", DHCP: true}
		},
	} {
		c := good()
		mutate(c)
		if _, said := check(c, false); len(said) > 0 {
			t.Errorf("%s: %s", name, strings.Join(said, "\n"))
		}
	}
}

func TestLabKeyIsTheLabs(t *testing.T) {
	text, err := os.ReadFile("../../../vm-test/testdata/lab_ed25519.pub")
	if err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(string(text)); fields[1] != LabKey || fields[2] != "slipway-lab-insecure" {
		t.Error("LabKey is not the key in vm-test/testdata")
	}
}
