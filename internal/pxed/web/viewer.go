package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/sse"
)

// viewer is one open page: what it was sent, so that only changes follow. A page
// that comes back after a cut is sent everything anew; pieces are put in place by
// their names, so nothing is doubled.
type viewer struct {
	h      *Handler
	out    *sse.Stream
	sent   map[string]string // rendered machine by its name
	order  []string          // names of the machines, as they were sent last
	events int64             // last event sent, -1 before the first
}

// piece is a rendered part of the page.
type piece struct {
	Name string `json:"name"`
	HTML string `json:"html"`
}

func (v *viewer) run(r *http.Request) {
	beat := time.NewTicker(sse.Heartbeat)
	defer beat.Stop()
	for {
		changed := v.h.desk.Changed()
		if v.update(r.Context()) != nil || !v.sleep(r.Context()) {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			if v.out.Comment("alive") != nil {
				return
			}
		case <-v.h.closing:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// sleep lets many changes become one update.
func (v *viewer) sleep(ctx context.Context) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-v.h.closing:
	case <-ctx.Done():
	}
	return false
}

func (v *viewer) update(ctx context.Context) error {
	list, err := v.h.desk.Machines(ctx)
	if err != nil {
		return err
	}
	if err := v.machines(list); err != nil {
		return err
	}
	return v.log(ctx)
}

func (v *viewer) machines(list []desk.Machine) error {
	var order []string
	for _, m := range list {
		name := elementID(m)
		order = append(order, name)
		html, err := v.h.render("machine.html", m)
		if err != nil {
			return err
		}
		if v.sent[name] == html {
			continue
		}
		v.sent[name] = html
		if err := v.out.Send("", "machine", piece{name, html}); err != nil {
			return err
		}
	}
	for name := range v.sent {
		if slices.Contains(order, name) {
			continue
		}
		delete(v.sent, name)
		if err := v.out.Send("", "gone", piece{Name: name}); err != nil {
			return err
		}
	}
	if slices.Equal(order, v.order) {
		return nil
	}
	v.order = order
	return v.out.Send("", "order", order)
}

// log sends new events; the first time, the last ones.
func (v *viewer) log(ctx context.Context) error {
	if v.events < 0 {
		last, err := v.h.desk.LastEvent(ctx)
		if err != nil {
			return err
		}
		v.events = max(0, last-lastEvents)
	}
	list, err := v.h.desk.Events(ctx, v.events, lastEvents)
	if err != nil {
		return err
	}
	for _, e := range list {
		html, err := v.h.render("event.html", e)
		if err != nil {
			return err
		}
		if err := v.out.Send("", "event", piece{eventID(e), html}); err != nil {
			return err
		}
		v.events = e.Seq
	}
	return nil
}
