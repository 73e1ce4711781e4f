package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/sequence"
)

// narrator tells a run to a person, or to a program as one JSON object a line. The
// first error of writing stays with the writer of the command.
type narrator struct {
	w      io.Writer
	format cli.Output
	redact func(string) string

	words string    // what is being waited for
	said  time.Time // when that was said last
}

// again is how often a wait is told that goes on without news.
const again = 30 * time.Second

// on tells one event.
func (n *narrator) on(e sequence.Event) {
	e = n.clean(e)
	if n.format == cli.JSON {
		// One line each, so that a reader can follow.
		enc := json.NewEncoder(n.w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(e)
		return
	}
	switch e.Kind {
	case sequence.Waiting:
		n.wait(e)
	case sequence.Skipped:
		n.line(e, "ok", "")
	case sequence.Done:
		n.line(e, "done", "after "+short(e.Time.Sub(*e.Since)))
	case sequence.Failed:
		n.line(e, "FAILED", "")
	case sequence.Started:
		n.words = ""
		n.line(e, "...", "")
		n.changes(e.Changes)
	case sequence.Planned:
		mark := "would"
		if e.Unseen {
			mark = "will"
		}
		n.line(e, mark, "")
		n.changes(e.Changes)
	case sequence.Drifted:
		n.line(e, "drift", "Flux owns it; nothing is changed")
		n.changes(e.Changes)
	}
}

// clean takes secrets out of an event; there should be none.
func (n *narrator) clean(e sequence.Event) sequence.Event {
	e.Words = n.redact(e.Words)
	var changes []sequence.Change
	for _, c := range e.Changes {
		changes = append(changes, sequence.Change{Verb: c.Verb, What: n.redact(c.What), Why: n.redact(c.Why)})
	}
	e.Changes = changes
	return e
}

func (n *narrator) line(e sequence.Event, mark, note string) {
	text := fmt.Sprintf("%-6s %-10s %-8s %s", mark, e.Layer, e.Node, e.Step)
	if note != "" {
		text += " (" + note + ")"
	}
	fmt.Fprintln(n.w, strings.TrimRight(text, " "))
}

func (n *narrator) changes(changes []sequence.Change) {
	for _, c := range changes {
		fmt.Fprintf(n.w, "         %-8s %s: %s\n", c.Verb, c.What, c.Why)
	}
}

// wait says what is awaited, since when, and when it ends; when that has not changed,
// only now and then.
func (n *narrator) wait(e sequence.Event) {
	if e.Words == n.words && e.Time.Sub(n.said) < again {
		return
	}
	n.words, n.said = e.Words, e.Time
	text := "         waiting " + strings.TrimPrefix(e.Words, "waiting ")
	if e.Since != nil {
		text += ", for " + short(e.Time.Sub(*e.Since))
	}
	if e.Deadline != nil {
		text += ", at most " + short(e.Deadline.Sub(e.Time)) + " more"
	}
	fmt.Fprintln(n.w, text)
}

func short(d time.Duration) string { return d.Round(time.Second).String() }
