// Package rescue is what a node says and offers when it cannot start.
package rescue

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/node/console"
	"github.com/slipway/slipway/internal/node/efivar"
)

// Trouble is why the node cannot start, and what can be done about it.
type Trouble struct {
	Slot  string
	Doing string // completes "while ..."
	Err   error

	OtherEntry   string // boot loader entry of the other slot
	OtherOffered bool
	CountsTries  bool // the boot loader itself goes on to another entry after some tries

	Shell bool
	Wait  time.Duration // until the node acts by itself; 0 is never
	Root  string        // a mounted, verified system that a shell may come from
}

// Choice is something that can be done.
type Choice int

// The choices.
const (
	Retry Choice = iota
	OtherSlot
	Shell
	Restart
)

// Offer is a line of the menu.
type Offer struct {
	Choice Choice
	Text   string
}

// Offers lists what can be chosen; the first line has number 1.
func (t Trouble) Offers() []Offer {
	offers := []Offer{{Retry, "try again"}}
	if t.OtherOffered {
		offers = append(offers, Offer{OtherSlot, "restart with the other slot (" + t.OtherEntry + ")"})
	}
	if t.Shell {
		offers = append(offers, Offer{Shell, "shell"})
	}
	return append(offers, Offer{Restart, "restart"})
}

// Default is what the node does by itself when nobody answers. While the boot
// loader counts tries a plain restart is right: after the last try it takes the
// other entry. A blessed entry would be taken for ever, so the other slot is asked for.
func (t Trouble) Default() Choice {
	if t.OtherOffered && !t.CountsTries {
		return OtherSlot
	}
	return Restart
}

// Parse reads an answer: a number of the menu.
func (t Trouble) Parse(answer string) (Choice, bool) {
	for i, o := range t.Offers() {
		if answer == fmt.Sprint(i+1) {
			return o.Choice, true
		}
	}
	return Retry, false
}

// Text is what stands on the screen.
func (t Trouble) Text() string {
	var s strings.Builder
	s.WriteString("\n\n")
	rule := strings.Repeat("-", 72) + "\n"
	s.WriteString(rule)
	if t.Slot == "" {
		s.WriteString("Slipway: this node cannot start.\n")
	} else {
		fmt.Fprintf(&s, "Slipway: this node cannot start from slot %s.\n", t.Slot)
	}
	s.WriteString(entry("while:", t.Doing))
	s.WriteString(entry("error:", t.Err.Error()))
	if hint := diag.HintOf(t.Err); hint != "" {
		s.WriteString(entry("hint:", hint))
	}
	s.WriteString(rule)
	s.WriteString("Type a number and press Enter:\n")
	for i, o := range t.Offers() {
		fmt.Fprintf(&s, "  %d  %s\n", i+1, o.Text)
	}
	return s.String()
}

// entry is a named text, broken between words so that it fits a console of 80 columns.
func entry(name, text string) string {
	const width, indent = 78, "          "
	line := fmt.Sprintf("  %-7s", name)
	var s strings.Builder
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != indent[1:] {
			s.WriteString(line + "\n")
			line = indent[1:]
		}
		line += " " + word
	}
	return s.String() + line + "\n"
}

// Run shows the trouble and carries out what is chosen. It returns when the boot
// shall be tried again.
func Run(c *console.Consoles, t Trouble) {
	c.Warn("cannot start slot %s while %s: %v", t.Slot, t.Doing, t.Err)
	for {
		c.Tell(t.Text())
		choice, from := ask(c, t)
		switch choice {
		case Retry:
			c.Tell("trying again\n")
			return
		case Shell:
			shell(c, t, from)
			c.Reopen()
		case OtherSlot:
			if err := efivar.Set(efivar.Dir, efivar.EntryOneShot, t.OtherEntry); err != nil {
				c.Tell(fmt.Sprintf("the boot loader cannot be told: %v\nchoose the entry in its menu instead (hold Space while it starts)\n", err))
			}
			restart(c)
		case Restart:
			restart(c)
		}
	}
}

// ask counts down and returns the first valid answer and the console it came from.
// Whoever types anything gets the whole time again.
func ask(c *console.Consoles, t Trouble) (Choice, string) {
	left := t.Wait
	for {
		wait := time.Duration(0)
		if t.Wait > 0 {
			if left <= 0 {
				return t.Default(), ""
			}
			c.Tell(fmt.Sprintf("%s in %d s\n", t.defaultText(), left/time.Second))
			wait = min(left, 10*time.Second)
		}
		in, ok := c.Ask(wait)
		if !ok && t.Wait > 0 {
			left -= wait
			continue
		}
		if !ok {
			// No console can be read and nothing may happen by itself: stay.
			time.Sleep(time.Minute)
			continue
		}
		if choice, known := t.Parse(in.Text); known {
			return choice, in.From
		}
		c.Tell(fmt.Sprintf("%q is not in the menu\n", in.Text))
		left = t.Wait
	}
}

func (t Trouble) defaultText() string {
	if t.Default() == OtherSlot {
		return "restarting with the other slot"
	}
	return "restarting"
}

func restart(c *console.Consoles) {
	c.Tell("restarting\n")
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		c.Tell(fmt.Sprintf("restarting failed: %v\n", err))
		time.Sleep(10 * time.Second)
	}
}
