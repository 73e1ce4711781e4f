// Package console talks to whoever stands before the node: on every console that
// the kernel has, because nobody knows whether that is a screen or a serial line.
package console

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Consoles is all consoles at once.
type Consoles struct {
	files []*os.File
	kmsg  io.Writer
}

// Open opens every console that /proc/consoles names. Without any it still
// works, and says everything to the kernel log only.
func Open() *Consoles {
	c := &Consoles{kmsg: io.Discard}
	if f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY|unix.O_NOCTTY, 0); err == nil {
		c.kmsg = f
	}
	c.Reopen()
	return c
}

// Reopen opens the consoles anew. When a shell that had one of them as its terminal
// ends, the kernel hangs up whoever else has it open.
func (c *Consoles) Reopen() {
	for _, f := range c.files {
		f.Close()
	}
	c.files = nil
	list, err := os.ReadFile("/proc/consoles")
	if err != nil {
		return
	}
	for _, name := range Names(string(list)) {
		// Non-blocking, so that a read can be given up when a countdown ends.
		f, err := os.OpenFile("/dev/"+name, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err == nil {
			c.files = append(c.files, f)
		}
	}
}

// Names returns the device names in the text of /proc/consoles.
func Names(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	return names
}

// Log writes one line to the kernel log, from where it reaches the consoles and
// later the journal.
func (c *Consoles) Log(format string, args ...any) {
	// <30> is facility daemon, severity informational.
	fmt.Fprintf(c.kmsg, "<30>nodeinit: "+format+"\n", args...)
}

// Warn is Log for what a person should notice.
func (c *Consoles) Warn(format string, args ...any) {
	fmt.Fprintf(c.kmsg, "<28>nodeinit: "+format+"\n", args...)
}

// Tell writes text to every console.
func (c *Consoles) Tell(text string) {
	text = strings.ReplaceAll(text, "\n", "\r\n")
	for _, f := range c.files {
		// A console that takes nothing, such as a serial line with flow control
		// and nobody at the other end, must not stop the node.
		_ = f.SetWriteDeadline(time.Now().Add(2 * time.Second))
		_, _ = io.WriteString(f, text)
	}
}

// Input is a line that somebody typed.
type Input struct {
	Text string
	From string // device path of the console it came from
}

// Ask waits until a line is typed on any console, or until the wait is over; a
// wait of 0 has no end. It reports whether there was a line.
func (c *Consoles) Ask(wait time.Duration) (Input, bool) {
	var deadline time.Time
	if wait > 0 {
		deadline = time.Now().Add(wait)
	}
	lines := make(chan Input, len(c.files))
	done := make(chan struct{}, len(c.files))
	for _, f := range c.files {
		_ = f.SetReadDeadline(deadline)
		go func() {
			if text, err := bufio.NewReader(f).ReadString('\n'); err == nil {
				lines <- Input{Text: strings.TrimSpace(text), From: f.Name()}
			}
			done <- struct{}{}
		}()
	}
	return c.first(lines, done, deadline)
}

// first returns the first line and stops the other readers, which would
// otherwise take the input of whatever runs next.
func (c *Consoles) first(lines <-chan Input, done <-chan struct{}, deadline time.Time) (Input, bool) {
	var got Input
	var ok bool
	for range c.files {
		<-done
		select {
		case got = <-lines:
			ok = true
		default:
		}
		if ok {
			for _, f := range c.files {
				_ = f.SetReadDeadline(time.Now())
			}
		}
	}
	if !ok && !deadline.IsZero() {
		// Consoles that cannot be read end at once: wait all the same.
		time.Sleep(time.Until(deadline))
	}
	return got, ok
}
