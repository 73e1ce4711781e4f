package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
)

// address asks for an address until there is one or time is over, and says in
// between that it is still asking.
func (r Request) address(ctx context.Context, n nic) (Up, error) {
	r.Say(fmt.Sprintf("asking for an address on %s (%s)", n.Name, n.MAC))
	ctx, cancel := context.WithTimeout(ctx, r.DHCP)
	defer cancel()
	for try := 1; ; try++ {
		up, ack, err := lease(ctx, n)
		if err == nil {
			return up, configure(n.Name, up.Address, ack.Router(), ack.DNS())
		}
		if ctx.Err() != nil {
			return Up{}, fmt.Errorf("no answer from a DHCP server within %s", r.DHCP)
		}
		r.Say(fmt.Sprintf("%s: %v; asking again", n.Name, err))
		if err := sleep(ctx, time.Second); err != nil {
			return Up{}, fmt.Errorf("no answer from a DHCP server within %s", r.DHCP)
		}
	}
}

// Keep asks for the address again and again, before its lease ends: destroying the
// content of a large disk takes hours. It returns when the context ends.
func Keep(ctx context.Context, up Up, say func(string)) {
	for sleep(ctx, max(up.Lease/2, time.Minute)) == nil {
		now, _, err := lease(ctx, nic{up.Name, up.MAC})
		switch {
		case err != nil:
			say(fmt.Sprintf("%s: the lease of %s could not be renewed: %v", up.Name, up.Address.IP, err))
		case !now.Address.IP.Equal(up.Address.IP):
			say(fmt.Sprintf("%s: the DHCP server has another address for this machine now, %s; staying with %s", up.Name, now.Address.IP, up.Address.IP))
		}
	}
}

// defaultLease is how long an address counts whose server does not say.
const defaultLease = time.Hour

// lease asks once.
func lease(ctx context.Context, n nic) (Up, *dhcpv4.DHCPv4, error) {
	client, err := nclient4.New(n.Name, nclient4.WithTimeout(3*time.Second), nclient4.WithRetry(3))
	if err != nil {
		return Up{}, nil, err
	}
	defer client.Close()
	modifiers, err := asOthersDo(client.InterfaceAddr())
	if err != nil {
		return Up{}, nil, err
	}
	offer, err := discover(ctx, client, modifiers)
	if err != nil {
		return Up{}, nil, err
	}
	got, err := client.RequestFromOffer(ctx, offer, modifiers...)
	if err != nil {
		return Up{}, nil, err
	}
	up, err := understood(n, got.ACK)
	return up, got.ACK, err
}

// understood reads what the installer needs out of an answer.
func understood(n nic, ack *dhcpv4.DHCPv4) (Up, error) {
	up := Up{Name: n.Name, MAC: n.MAC, Server: ack.ServerIdentifier(), Lease: ack.IPAddressLeaseTime(defaultLease)}
	up.Address = net.IPNet{IP: ack.YourIPAddr.To4(), Mask: ack.SubnetMask()}
	if up.Address.IP == nil || up.Address.IP.IsUnspecified() || len(up.Address.Mask) != net.IPv4len {
		return Up{}, errors.New("the DHCP server gave no address with a mask")
	}
	return up, nil
}

// asOthersDo identifies the machine by its MAC, as iPXE before and systemd-networkd
// after the install do, so that all of them get the same address.
func asOthersDo(mac net.HardwareAddr) ([]dhcpv4.Modifier, error) {
	if len(mac) != 6 {
		return nil, fmt.Errorf("%s is no Ethernet address", mac)
	}
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClientIdentifier(append([]byte{1}, mac...))),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("slipway-install")),
	}, nil
}

// discover takes the first offer of an address. Those of a proxyDHCP server, which
// only knows where to boot from, have none.
func discover(ctx context.Context, client *nclient4.Client, modifiers []dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	ask, err := dhcpv4.NewDiscovery(client.InterfaceAddr(), modifiers...)
	if err != nil {
		return nil, err
	}
	return client.SendAndRead(ctx, client.RemoteAddr(), ask, func(p *dhcpv4.DHCPv4) bool {
		return p.MessageType() == dhcpv4.MessageTypeOffer && !p.YourIPAddr.IsUnspecified()
	})
}
