package installer

import (
	"fmt"
	"net"
	"strings"

	"github.com/slipway/slipway/internal/machine"
)

// Line is what the kernel command line says to an installer.
type Line struct {
	Mode   string // machine.ModeInstall, machine.ModeInventory, or "": boot a slot
	Server string // base URL of pxed; "" means: a bundle on a stick
	Ticket string
	MAC    string // of the interface the machine booted from, canonical or ""
}

// ParseLine reads the words that are meant for an installer. Of a repeated word
// the last counts, as in the kernel.
func ParseLine(cmdline string) (Line, error) {
	var l Line
	for word := range strings.FieldsSeq(cmdline) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case machine.WordMode:
			l.Mode = value
		case machine.WordServer:
			l.Server = value
		case machine.WordTicket:
			l.Ticket = value
		case machine.WordMAC:
			l.MAC = value
		}
	}
	return l, l.check()
}

func (l *Line) check() error {
	switch l.Mode {
	case "":
		return nil
	case machine.ModeInstall, machine.ModeInventory:
	default:
		return fmt.Errorf("%s=%s on the kernel command line: want %s or %s", machine.WordMode, l.Mode, machine.ModeInstall, machine.ModeInventory)
	}
	if l.MAC != "" {
		mac, err := net.ParseMAC(l.MAC)
		if err != nil {
			return fmt.Errorf("%s=%s on the kernel command line: %w", machine.WordMAC, l.MAC, err)
		}
		l.MAC = mac.String()
	}
	if l.Mode == machine.ModeInventory && l.Server == "" {
		return fmt.Errorf("%s=%s on the kernel command line without %s: nobody to report to", machine.WordMode, l.Mode, machine.WordServer)
	}
	if l.Server != "" && l.Ticket == "" && l.Mode == machine.ModeInstall {
		return fmt.Errorf("%s on the kernel command line without %s: an install needs a ticket", machine.WordServer, machine.WordTicket)
	}
	return nil
}
