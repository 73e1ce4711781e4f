package dhcpd

import (
	"context"
	"log/slog"

	"github.com/slipway/slipway/internal/pxed/pxe"
)

// record counts and logs a decision, and follows what the machine makes of it.
func (r *reader) record(ctx context.Context, q pxe.Request, d pxe.Decision) {
	c := q.Client
	if r.server.cfg.Counters != nil {
		r.server.cfg.Counters.DHCP(c.Firmware.String(), string(d.Gave))
	}
	level := slog.LevelInfo
	switch {
	case d.Notable:
		level = slog.LevelWarn
	case d.Gave == pxe.GaveNothing:
		level = slog.LevelDebug
	}
	if r.log.Enabled(ctx, level) {
		r.attrs = attributes(r.attrs[:0], q, d)
		r.log.LogAttrs(ctx, level, "dhcp", r.attrs...)
	}
	if warning := r.follow(q, d); warning != "" {
		r.log.Warn("machine is not netbooting", "mac", c.MAC, "why", warning)
	}
}

func attributes(out []slog.Attr, q pxe.Request, d pxe.Decision) []slog.Attr {
	c := q.Client
	out = append(out,
		slog.String("mac", string(c.MAC)), slog.String("asked", c.Type.String()), slog.Int("port", int(q.Port)),
		slog.String("gave", string(d.Gave)), slog.String("why", d.Why),
	)
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
		out = append(out, slog.String("relay", c.Relay.String()))
	}
	return out
}
