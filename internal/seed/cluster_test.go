package seed

import (
	"net/netip"

	"github.com/slipway/slipway/internal/cluster"
)

// lab is a cluster as the lab profile has it: DHCP, one user, nothing special.
func lab() cluster.Cluster {
	return cluster.Cluster{
		Environment: "lab", Status: cluster.StatusActive, Substrate: cluster.SubstrateVM, Name: "slipway",
		Nodes: []cluster.Node{
			{Name: "n1", Role: cluster.RoleServer, Interfaces: []cluster.Interface{{MAC: "52:54:00:12:34:56", DHCP: true}}},
			{Name: "n2", Role: cluster.RoleServer, Interfaces: []cluster.Interface{{MAC: "52:54:00:00:00:02", DHCP: true}}},
		},
		Network: cluster.Network{
			LAN: netip.MustParsePrefix("10.0.2.0/24"), PodCIDR: netip.MustParsePrefix("10.42.0.0/16"),
			ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), ClusterDNS: netip.MustParseAddr("10.43.0.10"), ClusterDomain: "cluster.local",
		},
		Access: cluster.Access{Users: []cluster.User{{Name: "admin", Sudo: true, Keys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFixture admin@lab"}}}},
		System: cluster.System{
			Modules: []string{"br_netfilter", "overlay"}, Sysctls: map[string]string{"net.ipv4.ip_forward": "1", "fs.inotify.max_user_instances": "8192"},
			Locale: "C.UTF-8", JournalMax: 256 << 20,
		},
		Time: cluster.Time{Zone: "UTC"},
	}
}

// rack has everything that lab has not: static addresses, VLANs, jumbo frames, a
// zone, proxies, time servers, storage, a tunnel, an agent, a node outside of the LAN.
func rack() cluster.Cluster {
	c := lab()
	c.Environment, c.Substrate = "rack", cluster.SubstrateMetal
	c.Nodes = []cluster.Node{
		{Name: "no", Role: cluster.RoleServer, Interfaces: []cluster.Interface{
			{MAC: "52:54:00:12:34:56", Addresses: prefixes("192.168.1.11/24"), MTU: 1500},
			{MAC: "02:00:00:00:00:11", VLAN: 30, MTU: 9000, Addresses: prefixes("192.168.30.11/24")},
			{MAC: "02:00:00:00:00:11", VLAN: 31, Addresses: prefixes("192.168.31.11/24")},
		}},
		{Name: "0123", Role: cluster.RoleAgent, Interfaces: []cluster.Interface{
			{MAC: "02:00:00:00:00:12", VLAN: 20, Addresses: prefixes("192.168.1.12/24")},
			{MAC: "02:00:00:00:00:13", DHCP: true},
		}},
		{Name: "far", Role: cluster.RoleServer, Interfaces: []cluster.Interface{{MAC: "02:00:00:00:00:14", Addresses: prefixes("172.16.5.9/24")}}},
	}
	c.Network.LAN = netip.MustParsePrefix("192.168.1.0/24")
	c.Network.Gateway = netip.MustParseAddr("192.168.1.1")
	c.Network.DNS = []netip.Addr{netip.MustParseAddr("192.168.1.1"), netip.MustParseAddr("9.9.9.9")}
	c.Network.DNSZone = "home.example"
	c.Network.APIVIP = netip.MustParseAddr("192.168.1.10")
	c.Network.LoadBalancerPool = netip.MustParsePrefix("192.168.1.128/26")
	c.Network.VPN = []cluster.VPN{{Name: "wg0", Endpoint: "vpn.example:51820", PublicKey: "public", PrivateKeyRef: "vpn.wg0.key"}}
	c.Access.Users = append(c.Access.Users, cluster.User{Name: "on", Keys: []string{`ssh-rsa AAAA "a: b" # c`}}, cluster.User{Name: "idle"})
	c.Time = cluster.Time{Zone: "Europe/Berlin", Servers: []string{"192.168.1.1", "time.example"}}
	c.Proxy = cluster.Proxy{HTTP: "http://proxy.example:3128", HTTPS: `http://proxy.example:3128/$a"b`, NoProxy: []string{"git.example", "localhost"}}
	c.Longhorn.Enabled = true
	return c
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}
