package qemu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Console is what a serial port has said. Expect reads on from where the last
// Expect found something; a test talks to a console in one goroutine.
type Console struct {
	path string
	vm   *VM
	wire *os.File // for typing
	read int      // bytes that an Expect has consumed
}

// Type types a line on the terminal at this port.
func (c *Console) Type(line string) error { return c.Press(line + "\r") }

// Press presses keys on the terminal at this port.
func (c *Console) Press(keys string) error {
	_, err := c.wire.WriteString(keys)
	return err
}

// pollInterval is how often a console is looked at, and with it the precision of
// every time that a test takes from one.
const pollInterval = 50 * time.Millisecond

// tailLines is how many lines of a console a failure shows.
const tailLines = 40

// escapes are the terminal control sequences of firmware, kernel and systemd
// (ECMA-48 CSI, and the two-byte ones).
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[()][A-Za-z0-9]|[=>78cM])`)

// Expect waits until the console says something that matches re and returns the
// match with its groups. It fails when the limit is over or the machine has ended.
func (c *Console) Expect(ctx context.Context, re string, limit time.Duration) ([]string, error) {
	match, err := regexp.Compile(re)
	if err != nil {
		return nil, err
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		over := c.vm.over() // asked before reading, so that the last words count
		if m := c.find(match); m != nil {
			return m, nil
		}
		if over {
			return nil, c.missing(re, "the machine has ended"+c.vm.complaint())
		}
		select {
		case <-ctx.Done():
			return nil, c.missing(re, context.Cause(ctx).Error())
		case <-deadline.C:
			return nil, c.missing(re, "nothing like it in "+limit.String())
		case <-poll.C:
		case <-c.vm.exited:
		}
	}
}

// find looks for a match in what is new, and consumes everything up to its end.
func (c *Console) find(re *regexp.Regexp) []string {
	fresh := c.since(c.read)
	at := re.FindSubmatchIndex(fresh)
	if at == nil {
		return nil
	}
	c.read += at[1]
	var groups []string
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 {
			groups = append(groups, "")
			continue
		}
		groups = append(groups, string(fresh[at[i]:at[i+1]]))
	}
	return groups
}

// Text is everything that the console has said, without control sequences.
func (c *Console) Text() string { return string(c.since(0)) }

// Since is what the console has said after the last match of Expect.
func (c *Console) Since() string { return string(c.since(c.read)) }

// Mark consumes everything that the console has said so far.
func (c *Console) Mark() { c.read = len(c.since(0)) }

// since reads the cleaned text from byte n on. A sequence that is only half
// written can come out differently next time; it then only shifts text that no
// match ended in.
func (c *Console) since(n int) []byte {
	raw, err := os.ReadFile(c.path)
	if err != nil {
		return nil // QEMU has not made the file yet
	}
	clean := escapes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\r"), nil), nil)
	return clean[min(n, len(clean)):]
}

func (c *Console) missing(re, why string) error {
	return fmt.Errorf("waiting for %q on %s: %s; it ends in:\n%s", re, c.path, why, c.Tail())
}

// Tail is the end of the console, indented.
func (c *Console) Tail() string {
	lines := strings.Split(strings.TrimSpace(c.Text()), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "    " + strings.Join(lines, "\n    ")
}

// over says whether the machine has ended.
func (v *VM) over() bool {
	select {
	case <-v.exited:
		return true
	default:
		return false
	}
}
