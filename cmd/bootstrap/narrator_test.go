package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/sequence"
)

func tell(format cli.Output) string {
	var out bytes.Buffer
	n := narrator{w: &out, format: format, redact: func(s string) string { return strings.ReplaceAll(s, "canary", "<redacted>") }}
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	end := start.Add(10 * time.Minute)
	at := func(seconds int, e sequence.Event) {
		e.Time, e.Layer, e.Step, e.Node = start.Add(time.Duration(seconds)*time.Second), "k3s", "is a voter", "n2"
		n.on(e)
	}
	changes := []sequence.Change{{Verb: sequence.Create, What: "config with canary", Why: "is missing"}}
	at(0, sequence.Event{Kind: sequence.Skipped})
	at(0, sequence.Event{Kind: sequence.Started, Since: &start, Deadline: &end, Changes: changes})
	for _, s := range []int{1, 2, 20, 32, 63} {
		at(s, sequence.Event{Kind: sequence.Waiting, Words: "for n2, a learner", Since: &start, Deadline: &end})
	}
	at(70, sequence.Event{Kind: sequence.Done, Since: &start})
	at(70, sequence.Event{Kind: sequence.Planned, Changes: changes, Unseen: true})
	at(70, sequence.Event{Kind: sequence.Failed, Words: "canary"})
	return out.String()
}

func TestNarratorText(t *testing.T) {
	want := `ok     k3s        n2       is a voter
...    k3s        n2       is a voter
         create   config with <redacted>: is missing
         waiting for n2, a learner, for 1s, at most 9m59s more
         waiting for n2, a learner, for 32s, at most 9m28s more
         waiting for n2, a learner, for 1m3s, at most 8m57s more
done   k3s        n2       is a voter (after 1m10s)
will   k3s        n2       is a voter
         create   config with <redacted>: is missing
FAILED k3s        n2       is a voter
`
	if got := tell(cli.Text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNarratorJSON(t *testing.T) {
	got := tell(cli.JSON)
	if strings.Contains(got, "canary") {
		t.Errorf("a secret is told:\n%s", got)
	}
	if lines := strings.Count(got, "\n"); lines != 10 {
		t.Errorf("%d lines, want one an event:\n%s", lines, got)
	}
}
