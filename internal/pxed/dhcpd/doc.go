// Package dhcpd listens for DHCP on named interfaces and sends what packages pxe
// and lease decide. It is proxyDHCP beside the network's own DHCP server (ports 67
// and 4011), or the only DHCP server of an isolated network.
//
// Machines that have no address yet are answered by broadcast when they ask for
// it, and otherwise by a frame made by hand for their MAC; without the privilege
// for that (CAP_NET_RAW) by broadcast as well, which RFC 2131 section 4.1 allows.
package dhcpd
