package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setUp is `ip link set NAME up`, with the old interface of netdevice(7): the
// installer needs nothing that only netlink can do.
func setUp(name string) error {
	return withSocket(func(fd int) error {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
			return err
		}
		req.SetUint16(req.Uint16() | unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
	})
}

// configure gives an interface its address, the default route and name servers.
func configure(name string, address net.IPNet, routers, dns []net.IP) error {
	err := withSocket(func(fd int) error {
		if err := setAddress(fd, name, unix.SIOCSIFADDR, address.IP); err != nil {
			return err
		}
		if err := setAddress(fd, name, unix.SIOCSIFNETMASK, net.IP(address.Mask)); err != nil {
			return err
		}
		if len(routers) == 0 {
			return nil
		}
		return addDefault(fd, routers[0])
	})
	if err != nil {
		return fmt.Errorf("configuring %s: %w", name, err)
	}
	text := ""
	for _, server := range dns {
		text += "nameserver " + server.String() + "\n"
	}
	return os.WriteFile("/etc/resolv.conf", []byte(text), 0o644)
}

func withSocket(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(fd), unix.Close(fd))
}

func setAddress(fd int, name string, request uint, ip net.IP) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := req.SetInet4Addr(ip.To4()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, request, req)
}

// rtentry is struct rtentry of <net/route.h> on 64-bit machines.
type rtentry struct {
	_                         uint64
	dst, gateway, mask        [16]byte // struct sockaddr_in
	flags                     uint16
	_                         int16
	_                         uint64
	_                         uint64
	metric                    int16
	_                         [6]byte
	device                    uint64
	mtu, window, roundTripMax uint64
}

// addDefault adds the default route; one that is there already is right.
func addDefault(fd int, gateway net.IP) error {
	route := rtentry{dst: sockaddr(net.IPv4zero), gateway: sockaddr(gateway), mask: sockaddr(net.IPv4zero), flags: unix.RTF_UP | unix.RTF_GATEWAY}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&route)))
	if errno != 0 && errno != unix.EEXIST {
		return errno
	}
	return nil
}

func sockaddr(ip net.IP) (out [16]byte) {
	binary.NativeEndian.PutUint16(out[:], unix.AF_INET)
	copy(out[4:8], ip.To4())
	return out
}
