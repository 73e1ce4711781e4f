package dhcpd

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// link is one interface with its ports open.
type link struct {
	Interface
	server *Server
	log    *slog.Logger
	ports  []uint16
	conns  []*net.UDPConn
	frames *frames // nil without the privilege

	mu      sync.Mutex // of what follows
	leases  *lease.Table
	tracker pxe.Tracker
}

func (l *link) closePorts() {
	for _, c := range l.conns {
		c.Close()
	}
}

// verdict asks what is known about a netboot client. Who cannot answer in time
// does not keep a machine from its script, which decides for good.
func (l *link) verdict(ctx context.Context, c pxe.Client) pxe.Verdict {
	if l.server.cfg.Verdicts == nil || !c.IsPXE() || c.MAC == "" {
		return pxe.Netboot
	}
	v, err := l.server.cfg.Verdicts.Verdict(ctx, c)
	if err != nil {
		l.log.Warn("no verdict, the script will decide", "mac", c.MAC, "err", err)
		return pxe.Netboot
	}
	return v
}

// grant asks the leases, and tells what must be durable before the client is told.
func (l *link) grant(q pxe.Request) (pxe.Grant, *lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.leases.Answer(time.Now(), q.Packet, q.Client, l.Config.Server)
	return a.Grant, a.Save
}

// follow tells the tracker what happened.
func (l *link) follow(q pxe.Request, d pxe.Decision) string {
	c := q.Client
	if c.MAC == "" || !c.IsPXE() {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tracker.Spoke(now, c)
	if c.Type == dhcpv4.MessageTypeRequest && q.Port == pxe.PortServer {
		wanted, _ := netip.AddrFromSlice(q.Packet.Options.Get(dhcpv4.OptionRequestedIPAddress))
		l.tracker.Leased(now, c.MAC, wanted.Unmap())
	}
	switch {
	case q.Port == pxe.PortPXE && d.Reply != nil, c.IPXE:
		l.tracker.Followed(c.MAC)
	case c.Type == dhcpv4.MessageTypeDiscover && d.Reply != nil:
		return l.tracker.Offered(now, c.MAC, l.Config.Mode)
	}
	return ""
}

// script is pxe.Script for who has the address, when iPXE speaks there.
func (l *link) script(addr netip.Addr) []byte {
	mac, ok := l.owner(addr)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.tracker.IPXE(mac); ok {
		return pxe.Script(l.Config.HTTP, c)
	}
	return nil
}

func (l *link) followed(mac cluster.MAC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracker.Followed(mac)
}

func (l *link) owner(addr netip.Addr) (cluster.MAC, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases != nil {
		return l.leases.Owner(addr)
	}
	return l.tracker.Owner(addr)
}

func (l *link) all() []lease.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases == nil {
		return nil
	}
	return l.leases.Leases()
}
