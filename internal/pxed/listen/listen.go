// Package listen opens pxed's UDP ports: on one named interface each, so that
// nothing is ever answered on a network that was not named, and with errors that
// say who has the port or which privilege is missing.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
)

// UDP opens a port for everything that arrives on the interface: for the host's
// own address and for broadcasts. The kernel lets no second program have the port
// on this interface, and none on all interfaces.
func UDP(ctx context.Context, iface string, port uint16) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: onInterface(iface)}
	conn, err := config.ListenPacket(ctx, "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, Explain(err, "udp", iface, port)
	}
	return conn.(*net.UDPConn), nil
}

// onInterface binds a socket to an interface; everybody may, since Linux 5.7.
func onInterface(name string) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var err error
		controlled := raw.Control(func(fd uintptr) {
			err = errors.Join(
				unix.BindToDevice(int(fd), name),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
			)
		})
		return errors.Join(controlled, err)
	}
}

// Explain turns the error of opening a port into words that an operator can act
// on. network is "udp" or "tcp".
func Explain(err error, network, iface string, port uint16) error {
	where := network + " port " + strconv.Itoa(int(port)) + " on " + iface
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		holder := Holder(network, port)
		if holder == "" {
			holder = "another program"
		}
		return diag.WithHint(fmt.Errorf("%s is taken by %s", where, holder), busyHint(port))
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return diag.WithHint(fmt.Errorf("no permission to open %s", where),
			"run as root, or give the program CAP_NET_BIND_SERVICE (and CAP_NET_RAW, to answer machines without an address by unicast): setcap cap_net_bind_service,cap_net_raw+ep PATH")
	case errors.Is(err, unix.ENODEV):
		return diag.WithHint(fmt.Errorf("there is no interface %s", iface), "ip -brief address shows the interfaces of this machine")
	default:
		return fmt.Errorf("opening %s: %w", where, err)
	}
}

func busyHint(port uint16) string {
	switch port {
	case 67:
		return "one machine cannot be the network's DHCP server and a proxyDHCP server on the same interface: stop the other one and use mode: dhcp, or run pxed on another machine"
	default:
		return "stop the other program, or keep it off this interface"
	}
}

// Address is the first IPv4 address of an interface, with its network.
func Address(iface string) (netip.Prefix, error) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return netip.Prefix{}, Explain(unix.ENODEV, "", iface, 0)
	}
	list, err := i.Addrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading the addresses of %s: %w", iface, err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p, nil
		}
	}
	return netip.Prefix{}, diag.WithHint(fmt.Errorf("interface %s has no IPv4 address", iface), "give it one that does not change before pxed is started: machines are told to load from it")
}
