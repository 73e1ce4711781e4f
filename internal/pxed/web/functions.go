package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// functions are what the templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"bytes": bytesText, "rate": rateText, "seconds": secondsText, "clock": clock, "stamp": stamp,
		"elementID": elementID, "eventID": eventID, "title": title, "stages": stages, "content": contentText,
		"canArm": canArm, "canDisarm": canDisarm, "foreign": foreign, "join": strings.Join,
	}
}

// elementID names a machine's element: by its node, which is there before the
// machine is, else by its key. Of machines that are refused there may be two that
// would be the same node.
func elementID(m desk.Machine) string {
	name := "node-" + m.Node
	if m.Node == "" || m.Refused != "" {
		name = "machine-" + string(m.Key)
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

func eventID(e desk.Event) string { return fmt.Sprintf("event-%d", e.Seq) }

// title is what a machine is called.
func title(m desk.Machine) string {
	if m.Node != "" {
		return m.Node
	}
	_, name, _ := strings.Cut(string(m.Key), ":")
	return name
}

// stage is a step of an install, as the page shows it.
type stage struct {
	Name  machine.Stage
	State string // done, now or later
}

func stages(p *desk.Progress) []stage {
	all := []machine.Stage{
		machine.StageInventory, machine.StageSelect, machine.StageSanitize, machine.StageWrite,
		machine.StageSeed, machine.StageReadBack, machine.StageReceipt,
	}
	state, out := "done", make([]stage, 0, len(all))
	for _, name := range all {
		switch {
		case name == p.Stage:
			out, state = append(out, stage{name, "now"}), "later"
		default:
			out = append(out, stage{name, state})
		}
	}
	return out
}

func canArm(m desk.Machine) bool {
	return m.Node != "" && m.Refused == "" && m.State != life.StateImaging && m.State != life.StateArmed
}

func canDisarm(m desk.Machine) bool {
	return m.State == life.StateArmed || m.State == life.StateImaging || m.State == life.StateFailed
}

// foreign are the disks of a machine with something on them: arming may have to
// name them.
func foreign(m desk.Machine) []machine.Disk {
	var out []machine.Disk
	if m.Report == nil {
		return nil
	}
	for _, d := range m.Report.Disks {
		if len(d.Content) > 0 && d.ID() != "" && !d.Boot {
			out = append(out, d)
		}
	}
	return out
}

// contentText says what is on a disk.
func contentText(list []machine.Signature) string {
	if len(list) == 0 {
		return "blank"
	}
	var out []string
	for _, s := range list {
		text := s.Type
		if s.Partition > 0 {
			text = fmt.Sprintf("%d: %s", s.Partition, s.Type)
		}
		if s.Label != "" {
			text += " “" + s.Label + "”"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// bytesText writes a number of bytes in powers of 1024, as disks and images are
// measured here.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func rateText(perSecond float64) string { return fmt.Sprintf("%.1f MB/s", perSecond/1e6) }

func secondsText(s int) string {
	if s < 90 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min", (s+30)/60)
}

// clock and stamp write a time in UTC; the script turns it into the reader's.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
