package desk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
	"github.com/slipway/slipway/internal/pxed/desk/desktest"
)

// counted counts how often the ledger is looked into.
type counted struct {
	*desktest.Memory
	looks int
}

func (c *counted) Machines(ctx context.Context) ([]life.Record, error) {
	c.looks++
	return c.Memory.Machines(ctx)
}

type rig struct {
	*testing.T
	*desk.Desk
	ledger *counted
	clock  *desktest.Clock
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, ledger: &counted{Memory: desktest.NewMemory()}, clock: desktest.NewClock()}
	r.Desk = desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: r.ledger, Now: r.clock.Now})
	return r
}

// another is a second pxed with the same ledger.
func (r *rig) another() *desk.Desk {
	return desk.New(desk.Options{Cluster: desktest.Cluster(), Image: desktest.Image(), Ledger: r.ledger, Now: r.clock.Now})
}

func (r *rig) idle(want bool) {
	r.Helper()
	got, err := r.Idle(r.Context(), desktest.MAC1)
	if err != nil || got != want {
		r.Errorf("idle: %v, %v, want %v", got, err, want)
	}
}

func (r *rig) boot(d *desk.Desk) {
	r.Helper()
	d.Boot(r.Context(), desk.Ask{MAC: desktest.MAC1, Serial: "n1", Firmware: "uefi"})
}

func (r *rig) arm(d *desk.Desk) {
	r.Helper()
	if _, err := d.Arm(r.Context(), "n1", desk.Order{}); err != nil {
		r.Fatal(err)
	}
}

// A thousand packets cost one look into the ledger; what this pxed does counts at once.
func TestIdleIsAnsweredFromMemory(t *testing.T) {
	r := newRig(t)
	r.idle(false) // never seen
	r.boot(r.Desk)
	r.idle(true)
	before := r.ledger.looks
	for range 1000 {
		r.idle(true)
	}
	if r.ledger.looks != before {
		t.Errorf("%d looks into the ledger", r.ledger.looks-before)
	}
	r.arm(r.Desk)
	r.idle(false)
}

func TestIdleSeesWhatOthersDoWithinASecond(t *testing.T) {
	r := newRig(t)
	r.boot(r.Desk)
	r.idle(true)
	r.arm(r.another())
	r.clock.Pass(time.Second)
	r.idle(false)
}

// An armed machine whose ticket has expired is idle though nothing was written.
func TestIdleGoesByTheClock(t *testing.T) {
	r := newRig(t)
	r.boot(r.Desk)
	r.arm(r.Desk)
	r.idle(false)
	r.clock.Pass(24 * time.Hour)
	r.idle(true)
}

// While the ledger does not answer nothing is certain, and it is not asked again for
// every packet.
func TestIdleWithoutLedger(t *testing.T) {
	r := newRig(t)
	r.boot(r.Desk)
	r.ledger.Down(errors.New("no majority"))
	before := r.ledger.looks
	for range 10 {
		if idle, err := r.Idle(t.Context(), desktest.MAC1); err == nil || idle {
			t.Errorf("idle: %v, %v", idle, err)
		}
	}
	if n := r.ledger.looks - before; n != 1 {
		t.Errorf("%d looks into the ledger", n)
	}
	r.ledger.Down(nil)
	r.clock.Pass(time.Second)
	r.idle(true)
}
