package dhcpd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/slipway/slipway/internal/pxed/listen"
	"github.com/slipway/slipway/internal/pxed/pxe"
	"github.com/slipway/slipway/internal/pxed/pxe/lease"
)

// What arrives in a burst is answered before anything is logged: when the power
// comes back, all machines ask at once.
const (
	burst       = 32
	messageSize = 4096 // DHCP messages are made for one Ethernet frame
)

// decided is a request and what it gets.
type decided struct {
	request dhcpv4.DHCPv4 // its memory, and that of the reply, is used again for the next burst
	reply   dhcpv4.DHCPv4
	q       pxe.Request
	d       pxe.Decision
	save    *lease.Lease // must be durable before the answer is sent
	answer  []byte
	silent  bool // nothing is to be said about it any more
}

// reader answers the requests of one port. It holds what is needed for a burst, so
// that none of it is made anew for every packet.
type reader struct {
	*link
	port    uint16
	batch   *listen.Batch
	time    allowance // of the verdicts
	all     []decided
	keep    []lease.Lease
	packets []listen.Packet
	of      []*decided // what the packets answer
	attrs   []slog.Attr
}

// read answers requests until ctx ends.
func (l *link) read(ctx context.Context, conn *net.UDPConn, port uint16) error {
	b, err := listen.NewBatch(conn, burst, messageSize)
	if err != nil {
		return err
	}
	// Not by closing the port: what is being answered is finished.
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	r := &reader{link: l, port: port, batch: b, all: make([]decided, burst)}
	defer r.time.end()
	for {
		packets, err := b.Read()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("reading DHCP requests on %s: %w", l.Name, err)
		}
		r.burst(ctx, packets)
	}
}

// burst decides about the requests of a burst, makes durable what must be, sends
// the answers, and then tells what was done.
func (r *reader) burst(ctx context.Context, packets []listen.Packet) {
	soon := r.time.from(ctx)
	n := 0
	for _, p := range packets {
		if r.decide(soon, p, &r.all[n]) {
			n++
		}
	}
	all := r.all[:n]
	r.save(ctx, all)
	r.send(all)
	for i := range all {
		if !all[i].silent {
			r.record(ctx, all[i].q, all[i].d)
		}
	}
}

// decide decides about one request. What cannot be parsed is no DHCP and gets no
// answer.
func (r *reader) decide(ctx context.Context, packet listen.Packet, one *decided) bool {
	p := &one.request
	if err := pxe.Parse(packet.Data, p); err != nil {
		r.log.Debug("not a DHCP message", "from", packet.Peer, "err", err)
		return false
	}
	one.q = pxe.Request{Packet: p, Client: pxe.Classify(p), Port: r.port, From: packet.Peer, Into: &one.reply}
	one.q.Verdict = r.verdict(ctx, one.q.Client)
	one.save, one.silent = nil, false
	if r.leases != nil && r.port == pxe.PortServer && one.q.Verdict != pxe.Ignore && one.q.Client.MAC != "" && p.OpCode == dhcpv4.OpcodeBootRequest {
		one.q.Grant, one.save = r.grant(one.q)
	}
	one.d = pxe.Decide(one.q, r.Config)
	return true
}

// save makes the leases of a burst durable, all of them at once: each costs a flush
// of the disk. Where that fails nobody is told of a lease.
func (r *reader) save(ctx context.Context, all []decided) {
	r.keep = r.keep[:0]
	for i := range all {
		if all[i].save != nil {
			r.keep = append(r.keep, *all[i].save)
		}
	}
	if len(r.keep) == 0 || r.server.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	err := r.server.cfg.Store.Save(ctx, r.keep)
	if err == nil {
		return
	}
	for i := range all {
		if all[i].save != nil {
			all[i].d.Reply, all[i].silent = nil, true
			r.log.Error("no lease can be given", "mac", all[i].q.Client.MAC, "addr", all[i].save.Addr, "err", err)
		}
	}
}

// send sends the answers: by frames made by hand where that is due and possible,
// the others together. What could not be sent becomes a decision that says so.
func (r *reader) send(all []decided) {
	r.packets, r.of = r.packets[:0], r.of[:0]
	for i := range all {
		one := &all[i]
		if one.d.Reply == nil {
			continue
		}
		one.answer = pxe.Append(one.answer[:0], one.d.Reply)
		to := one.d.To
		if to.MAC != "" && r.frames != nil {
			one.sent(r.frames.send(r.Config.Server, to, one.answer))
			continue
		}
		if to.MAC != "" {
			to = pxe.Broadcast()
		}
		r.packets, r.of = append(r.packets, listen.Packet{Peer: to.Addr, Data: one.answer}), append(r.of, one)
	}
	for packets, of := r.packets, r.of; len(packets) > 0; {
		n, err := r.batch.Write(packets)
		if err == nil {
			return
		}
		of[n].sent(err)
		packets, of = packets[n+1:], of[n+1:]
	}
}

func (one *decided) sent(err error) {
	if err != nil {
		one.d = pxe.Decision{Gave: pxe.GaveNothing, Why: "sending the answer: " + err.Error(), Notable: true}
	}
}

// allowance is the time that verdicts have, for all requests of a burst.
type allowance struct {
	ctx  context.Context
	stop context.CancelFunc
	born time.Time
}

// from gives a context that ends in verdictTime, or up to a half sooner: it is used
// for more than one burst, because a timer costs as much as half an answer.
func (a *allowance) from(ctx context.Context) context.Context {
	if now := time.Now(); a.ctx == nil || now.Sub(a.born) > verdictTime/2 {
		a.end()
		a.born = now
		a.ctx, a.stop = context.WithTimeout(ctx, verdictTime)
	}
	return a.ctx
}

func (a *allowance) end() {
	if a.stop != nil {
		a.stop()
	}
}
