package dhcpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/pxed/listen"
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

// What arrives in a burst is answered before anything is logged: when the power
// comes back, all machines ask at once.
const (
	burst       = 32
	messageSize = 4096 // DHCP messages are made for one Ethernet frame
)

// read answers requests until ctx ends.
func (l *link) read(ctx context.Context, conn *net.UDPConn, port uint16) error {
	b, err := listen.NewBatch(conn, burst, messageSize)
	if err != nil {
		return err
	}
	defer b.Close()
	defer b.StopWith(ctx)()
	for {
		packets, err := b.Read()
		switch {
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("reading DHCP requests on %s: %w", l.Name, err)
		}
		l.answer(ctx, b, port, packets)
	}
}

// answer decides about the requests of a burst and sends the answers.
func (l *link) answer(ctx context.Context, b *listen.Batch, port uint16, packets []listen.Packet) {
	type decided struct {
		q pxe.Request
		d pxe.Decision
	}
	done := make([]decided, 0, burst)
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	for _, p := range packets {
		q, d, ok := l.decide(ctx, port, p)
		if !ok {
			continue
		}
		if d.Reply != nil {
			if err := l.send(b, d); err != nil {
				d = unsent(err)
			}
		}
		done = append(done, decided{q, d})
	}
	for _, one := range done {
		l.record(ctx, one.q, one.d)
	}
}

func unsent(err error) pxe.Decision {
	return pxe.Decision{Gave: pxe.GaveNothing, Why: "sending the answer: " + err.Error(), Notable: true}
}

// send sends an answer, by a frame made by hand where that is due and possible, or
// by broadcast instead.
func (l *link) send(b *listen.Batch, d pxe.Decision) error {
	data, to := d.Reply.ToBytes(), d.To
	switch {
	case to.MAC != "" && l.frames != nil:
		return l.frames.send(l.Config.Server, to, data)
	case to.MAC != "":
		to = pxe.Broadcast()
	}
	return b.Write(listen.Packet{Peer: to.Addr, Data: data})
}

// decide answers one request. What cannot be parsed is no DHCP and gets no answer.
func (l *link) decide(ctx context.Context, port uint16, packet listen.Packet) (pxe.Request, pxe.Decision, bool) {
	p, err := dhcpv4.FromBytes(packet.Data)
	if err != nil {
		l.log.Debug("not a DHCP message", "from", packet.Peer, "err", err)
		return pxe.Request{}, pxe.Decision{}, false
	}
	q := pxe.Request{Packet: p, Client: pxe.Classify(p), Port: port, From: packet.Peer}
	q.Verdict = l.verdict(ctx, q.Client)
	if l.leases != nil && port == pxe.PortServer && q.Verdict != pxe.Ignore && q.Client.MAC != "" && p.OpCode == dhcpv4.OpcodeBootRequest {
		if q.Grant, err = l.grant(ctx, q); err != nil {
			l.log.Error("no lease can be given", "mac", q.Client.MAC, "err", err)
			return q, pxe.Decision{}, false
		}
	}
	return q, pxe.Decide(q, l.Config), true
}

// verdict asks what is known about a netboot client. Who cannot answer in time
// does not keep a machine from its script, which decides for good.
func (l *link) verdict(ctx context.Context, c pxe.Client) pxe.Verdict {
	if l.server.cfg.Verdicts == nil || !c.IsPXE() || c.MAC == "" {
		return pxe.Netboot
	}
	ctx, cancel := context.WithDeadline(ctx, l.verdictDeadline(ctx))
	defer cancel()
	v, err := l.server.cfg.Verdicts.Verdict(ctx, c)
	if err != nil {
		l.log.Warn("no verdict, the script will decide", "mac", c.MAC, "err", err)
		return pxe.Netboot
	}
	return v
}

// verdictDeadline leaves to the leases what is left of a burst's time.
func (l *link) verdictDeadline(burst context.Context) time.Time {
	end, _ := burst.Deadline()
	return end.Add(verdictTime - saveTime)
}

// grant asks the leases and makes durable what must be before it is told.
func (l *link) grant(ctx context.Context, q pxe.Request) (pxe.Grant, error) {
	l.mu.Lock()
	a := l.leases.Answer(time.Now(), q.Packet, q.Client, l.Config.Server)
	l.mu.Unlock()
	if a.Save == nil || l.server.cfg.Store == nil {
		return a.Grant, nil
	}
	if err := l.server.cfg.Store.Save(ctx, *a.Save); err != nil {
		return pxe.Grant{}, fmt.Errorf("keeping the lease of %s: %w", a.Save.Addr, err)
	}
	return a.Grant, nil
}

// record counts and logs a decision, and follows what the machine makes of it.
func (l *link) record(ctx context.Context, q pxe.Request, d pxe.Decision) {
	c := q.Client
	if l.server.cfg.Counters != nil {
		l.server.cfg.Counters.DHCP(c.Firmware.String(), string(d.Gave))
	}
	level := slog.LevelInfo
	switch {
	case d.Notable:
		level = slog.LevelWarn
	case d.Gave == pxe.GaveNothing:
		level = slog.LevelDebug
	}
	if l.log.Enabled(ctx, level) {
		l.log.LogAttrs(ctx, level, "dhcp", attributes(q, d)...)
	}
	if warning := l.follow(q, d); warning != "" {
		l.log.Warn("machine is not netbooting", "mac", c.MAC, "why", warning)
	}
}

func attributes(q pxe.Request, d pxe.Decision) []slog.Attr {
	c := q.Client
	out := []slog.Attr{
		slog.String("mac", string(c.MAC)), slog.String("asked", c.Type.String()), slog.Int("port", int(q.Port)),
		slog.String("gave", string(d.Gave)), slog.String("why", d.Why),
	}
	if c.IsPXE() {
		out = append(out, slog.String("firmware", c.Firmware.String()), slog.Bool("ipxe", c.IPXE), slog.String("uuid", c.UUID), slog.String("verdict", q.Verdict.String()))
	}
	if c.VendorClass != "" {
		out = append(out, slog.String("class", c.VendorClass))
	}
	if d.Reply != nil && d.Reply.BootFileName != "" {
		out = append(out, slog.String("file", d.Reply.BootFileName))
	}
	if c.Relay.IsValid() {
		out = append(out, slog.Any("relay", c.Relay))
	}
	return out
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
