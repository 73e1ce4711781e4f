// Package machines is pxed as a rebuild uses it: one machine, how it stands, and the
// arming of it.
package machines

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/verdict"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// Machines are those of one pxed.
type Machines struct{ Pxed *client.Client }

// Machine is the machine of a node. It need not have been seen yet: then it is
// expected, and can be armed all the same.
func (m Machines) Machine(ctx context.Context, node string) (verdict.Machine, error) {
	v, err := m.Pxed.Machine(ctx, node)
	if err != nil {
		return verdict.Machine{}, err
	}
	out := verdict.Machine{State: v.State, Refused: v.Refused, Why: v.Why, Hint: v.Hint, Said: said(v)}
	if v.Grant != nil {
		out.Arming, out.Live, out.End = v.Grant.ID, v.Grant.Live, v.Grant.End
	}
	if v.State == life.StateArmed && v.Why != "" {
		out.Live = false // for an image that is not served any more
	}
	if v.Installed != nil {
		out.Installed = *v.Installed
	}
	if v.Ready != nil {
		out.Ready = *v.Ready
	}
	return out, nil
}

func said(m desk.Machine) string {
	if m.Progress == nil && m.Turned != nil {
		return "pxed refused what it asked for: " + m.Turned.Reason
	}
	return progress(m.Progress)
}

func progress(p *desk.Progress) string {
	if p == nil {
		return ""
	}
	words := string(p.Stage)
	if p.Percent > 0 {
		words += fmt.Sprintf(", %d %%", p.Percent)
	}
	if p.Left > 0 {
		words += fmt.Sprintf(", about %s left", time.Duration(p.Left)*time.Second)
	}
	return words
}

// Arm lets the machine of a node be imaged once.
func (m Machines) Arm(ctx context.Context, node string, o verdict.Order) error {
	_, err := m.Pxed.Arm(ctx, node, desk.Order{
		ID: o.ID, Seconds: int64(o.Valid / time.Second), Overwrite: o.Overwrite, Sanitize: o.Sanitize, Data: o.Data,
	})
	return err
}

// Wake calls the machine of a node by Wake-on-LAN.
func (m Machines) Wake(ctx context.Context, node string) error {
	_, err := m.Pxed.Wake(ctx, node)
	return err
}

// HostKeys are the SSH host keys that a node's last install gave it.
func (m Machines) HostKeys(ctx context.Context, node string) ([]string, error) {
	v, err := m.Pxed.Machine(ctx, node)
	if err != nil || v.Receipt == nil {
		return nil, err
	}
	return v.Receipt.HostKeys, nil
}
