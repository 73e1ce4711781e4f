// Package bootline reads the part of the kernel command line that is meant for
// nodeinit.
package bootline

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
)

// DefaultReboot is how long a node that cannot start waits for a person before
// it restarts by itself.
const DefaultReboot = 60 * time.Second

// Line is what the boot entry says.
type Line struct {
	Slot     string        // "a" or "b"
	RootHash string        // dm-verity root hash, 64 lower-case hex digits
	Shell    bool          // whether the profile allows a shell when the node cannot start
	Reboot   time.Duration // wait before a restart; 0 waits for ever
}

// Other is the slot that was not booted.
func (l Line) Other() string {
	if l.Slot == "a" {
		return "b"
	}
	return "a"
}

// Parse reads the words that begin with "slipway." and leaves the rest to the
// kernel. Of a repeated word the last counts, as in the kernel. The returned Line
// holds what could be read even when there is an error, so that the rescue menu
// obeys the profile.
func Parse(cmdline string) (Line, error) {
	line := Line{Reboot: DefaultReboot}
	var first error
	for _, word := range strings.Fields(cmdline) {
		key, value, _ := strings.Cut(word, "=")
		name, ours := strings.CutPrefix(key, "slipway.")
		if !ours {
			continue
		}
		if err := line.set(name, value); err != nil && first == nil {
			first = err
		}
	}
	if first == nil {
		first = line.complete()
	}
	return line, diag.WithHint(first, "the boot entry on the EFI system partition (loader/entries) is damaged or was edited: write the image again")
}

func (l *Line) set(name, value string) error {
	switch name {
	case "slot":
		if value != "a" && value != "b" {
			return fmt.Errorf("slipway.slot=%s on the kernel command line is neither a nor b", value)
		}
		l.Slot = value
	case "roothash":
		if raw, err := hex.DecodeString(value); err != nil || len(raw) != 32 {
			return fmt.Errorf("slipway.roothash=%s on the kernel command line is not a SHA-256 in hex", value)
		}
		l.RootHash = strings.ToLower(value)
	case "shell":
		l.Shell = value == "1"
	case "reboot":
		seconds, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return fmt.Errorf("slipway.reboot=%s on the kernel command line is not a number of seconds", value)
		}
		l.Reboot = time.Duration(seconds) * time.Second
	}
	return nil
}

func (l *Line) complete() error {
	if l.Slot == "" {
		return fmt.Errorf("the kernel command line names no slot (slipway.slot=)")
	}
	if l.RootHash == "" {
		return fmt.Errorf("the kernel command line has no root hash (slipway.roothash=), so slot %s cannot be verified", l.Slot)
	}
	return nil
}
