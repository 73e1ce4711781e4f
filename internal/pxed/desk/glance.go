package desk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
)

// glance is the fleet as it was a moment ago, for who asks with every packet: when
// the power comes back all machines ask at once, and a look into the ledger costs
// ten times as much as the rest of an answer.
type glance struct {
	mu      sync.Mutex
	at      time.Time
	changed <-chan struct{} // closed when something has changed since
	known   map[cluster.MAC]life.Record
	err     error // of the ledger; not asked again at once
}

// fresh is how old a glance may be. What this pxed has changed is seen at once, and
// what another member of the ledger has changed within this time.
const fresh = time.Second

// lately is the one record with this address as it was lately; known is false when
// there is none, or several.
func (d *Desk) lately(ctx context.Context, mac cluster.MAC) (r life.Record, known bool, err error) {
	g := &d.glance
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.holds(d.now()) {
		g.changed, g.at = d.pulse.wait(), d.now() // before the look: what happens meanwhile is not missed
		fleet, err := d.ledger.Machines(ctx)
		g.known, g.err = byMAC(fleet), err
	}
	r, known = g.known[mac]
	return r, known, g.err
}

func (g *glance) holds(now time.Time) bool {
	if g.changed == nil || now.Sub(g.at) >= fresh || now.Before(g.at) {
		return false
	}
	select {
	case <-g.changed:
		return false
	default:
		return true
	}
}

func byMAC(fleet []life.Record) map[cluster.MAC]life.Record {
	out, twice := map[cluster.MAC]life.Record{}, map[cluster.MAC]bool{}
	for _, r := range fleet {
		for _, mac := range r.MACs {
			if other, taken := out[mac]; taken && other.Key != r.Key {
				twice[mac] = true
			}
			out[mac] = r
		}
	}
	for mac := range twice {
		delete(out, mac)
	}
	return out
}

// Idle reports whether it is certain that there is nothing to do for a machine: it
// is known by this address, nothing speaks against it, and it is not armed.
func (d *Desk) Idle(ctx context.Context, mac cluster.MAC) (bool, error) {
	r, known, err := d.lately(ctx, mac)
	if err != nil {
		return false, fmt.Errorf("ledger: %w", err)
	}
	if !known || r.Refused != "" || r.Node == "" || r.LastSeen.IsZero() {
		return false, nil
	}
	return life.DecideBoot(r, d.policy(), d.now()).Action == machine.ActionBootDisk, nil
}
