// Package lease keeps the addresses of an isolated network whose only DHCP server
// is pxed: which machine has which one, and until when. It is a value that is told
// the time; who holds it makes it durable (see Grant's Save).
//
// A lease belongs to a MAC, whatever client identifier comes along. RFC 2131 would
// have it belong to the identifier, but one machine shows several on its way:
// firmware none or its UUID, iPXE its hardware address, the running system a DUID.
// By the MAC it keeps one address from power-on to the finished node.
package lease

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/slipway/slipway/internal/cluster"
)

// State is what a lease is good for.
type State string

// The states. An offered address is kept for a short while for who it was
// offered to; a declined one was found in use by somebody unknown.
const (
	Offered  State = "offered"
	Bound    State = "bound"
	Declined State = "declined"
)

// Lease is one address in use.
type Lease struct {
	Addr    netip.Addr  `json:"addr"`
	MAC     cluster.MAC `json:"mac"`
	Host    string      `json:"host,omitempty"` // as the client calls itself
	State   State       `json:"state"`
	Expires time.Time   `json:"expires"`
}

// Reservation is an address that belongs to one machine for good.
type Reservation struct {
	MAC  cluster.MAC
	Addr netip.Addr
	Host string
}

// Config describes the addresses of one network.
type Config struct {
	Network  netip.Prefix // of the interface
	First    netip.Addr   // the pool, both ends included
	Last     netip.Addr
	Taken    []netip.Addr // inside the pool but not ours to give: the server, the router
	Reserved []Reservation
	Time     time.Duration // of a lease; 0 means an hour
}

// Times that are not configured.
const (
	defaultTime  = time.Hour
	offerTime    = 2 * time.Minute // firmware under load may take a minute from OFFER to REQUEST
	declinedTime = 10 * time.Minute
)

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	switch {
	case !c.Network.IsValid() || !c.Network.Addr().Is4():
		return errors.New("the network is not an IPv4 range")
	case !c.First.Is4() || !c.Last.Is4() || c.Last.Less(c.First):
		return fmt.Errorf("pool %s-%s is not a range of addresses", c.First, c.Last)
	case !c.usable(c.First) || !c.usable(c.Last):
		return fmt.Errorf("pool %s-%s does not lie between the first and last address of %s", c.First, c.Last, c.Network)
	case c.Time < 0 || c.Time != 0 && c.Time < time.Minute:
		return fmt.Errorf("lease time %s is less than a minute", c.Time)
	}
	return c.checkReserved()
}

func (c Config) checkReserved() error {
	macs, addrs := map[cluster.MAC]bool{}, map[netip.Addr]bool{}
	for _, r := range c.Reserved {
		switch {
		case !r.Addr.Is4() || !c.usable(r.Addr):
			return fmt.Errorf("reserved address %s of %s is not inside %s", r.Addr, r.MAC, c.Network)
		case macs[r.MAC]:
			return fmt.Errorf("%s has two reserved addresses", r.MAC)
		case addrs[r.Addr]:
			return fmt.Errorf("address %s is reserved for two machines", r.Addr)
		}
		macs[r.MAC], addrs[r.Addr] = true, true
	}
	return nil
}

// usable reports whether an address can belong to a machine of the network:
// neither the network's own nor the broadcast address.
func (c Config) usable(a netip.Addr) bool {
	if !c.Network.Contains(a) {
		return false
	}
	if c.Network.Bits() >= 31 {
		return true
	}
	host := number(a) & (1<<(32-c.Network.Bits()) - 1)
	return host != 0 && host != 1<<(32-c.Network.Bits())-1
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}
