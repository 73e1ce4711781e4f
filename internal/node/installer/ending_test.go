package installer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/install"
)

// A machine never restarts into an installer again and again without pxed knowing.
func TestEndings(t *testing.T) {
	held := machine.Receipt{Ticket: "t", Node: "n1", Written: true, ReadBack: true}
	untouched := machine.Receipt{Ticket: "t", Node: "n1"}
	refused := &install.Refused{Reasons: []string{"too small"}}
	used := fmt.Errorf("%w: used", install.ErrTicket)
	for name, tt := range map[string]struct {
		result install.Result
		stick  bool
		want   action
	}{
		"installed":                    {install.Result{Receipt: held, Acknowledged: true}, false, restart},
		"installed, receipt lost":      {install.Result{Receipt: held}, false, powerOff},
		"installed from a stick":       {install.Result{Receipt: held, Acknowledged: true}, true, takeStick},
		"stick broke before its end":   {install.Result{Receipt: held}, true, powerOff},
		"refused":                      {install.Result{Receipt: untouched, Acknowledged: true, Err: refused}, false, restart},
		"refused, nobody knows":        {install.Result{Receipt: untouched, Err: refused}, false, powerOff},
		"refused, from a stick":        {install.Result{Receipt: untouched, Acknowledged: true, Err: refused}, true, powerOff},
		"failed":                       {install.Result{Receipt: held, Acknowledged: true, Err: errors.New("disk")}, false, restart},
		"ticket not valid":             {install.Result{Err: used}, false, restart},
		"ticket withdrawn half-way":    {install.Result{Receipt: held, Err: used}, false, powerOff},
		"ticket used, on a stick":      {install.Result{Err: used}, true, takeStick},
		"ticket expired, on a stick":   {install.Result{Receipt: untouched, Acknowledged: true, Err: used}, true, powerOff},
		"told to boot its disk":        {install.Result{Reply: machine.Reply{Action: machine.ActionBootDisk}}, false, restart},
		"told to power off":            {install.Result{Reply: machine.Reply{Action: machine.ActionPowerOff}}, false, powerOff},
		"told to wait":                 {install.Result{Reply: machine.Reply{Action: machine.ActionWait, After: 10}}, false, again},
		"inventory, armed meanwhile":   {install.Result{Reply: machine.Reply{Action: machine.ActionInstall}}, false, restart},
		"told something of the future": {install.Result{Reply: machine.Reply{Action: "dance"}}, false, restart},
	} {
		if got := endingOf(tt.result, tt.stick); got.action != tt.want || got.action != again && got.wait == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWaitIsBounded(t *testing.T) {
	for after, want := range map[int]time.Duration{-1: leastAgain, 0: leastAgain, 60: time.Minute, 1 << 30: mostAgain} {
		if got := obey(machine.Reply{Action: machine.ActionWait, After: after}); got.wait != want {
			t.Errorf("%d: %s", after, got.wait)
		}
	}
}

func TestFailedShowsHint(t *testing.T) {
	e := failed(diag.WithHint(errors.New("no link"), "check the cable"))
	if text := strings.Join(e.lines, "\n"); text != "nothing was written: no link\nhint: check the cable" || e.action != restart {
		t.Errorf("%+v", e)
	}
}

func TestCarriers(t *testing.T) {
	stick := machine.Disk{Name: "sda", Content: []machine.Signature{{Type: "gpt"}, {Partition: 1, Type: "partition", Label: "esp"}, {Partition: 2, Type: "partition", Label: "slipway-inst"}, {Partition: 2, Type: "vfat", Label: "SLIPWAY-INST"}}}
	whole := machine.Disk{Name: "nvme0n1", Content: []machine.Signature{{Type: "ext4", Label: "SLIPWAY-INST"}}}
	got := carriers([]machine.Disk{{Name: "vda"}, stick, whole})
	if len(got) != 2 || got[0].path != "/dev/sda2" || got[1].path != "/dev/nvme0n1" {
		t.Errorf("%+v", got)
	}
}
