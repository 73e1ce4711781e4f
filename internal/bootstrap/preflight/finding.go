package preflight

import (
	"fmt"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Finding is one reason not to begin.
type Finding struct {
	Node string `json:"node,omitempty"` // empty when it is about the cluster
	What string `json:"what"`           // one sentence without a period
	Hint string `json:"hint,omitempty"`
}

// String is the finding on one line, and the hint on another.
func (f Finding) String() string {
	text := f.What
	if f.Node != "" {
		text = f.Node + ": " + text
	}
	if f.Hint != "" {
		text += "\n    hint: " + f.Hint
	}
	return text
}

// Error is everything that was found.
type Error struct{ Findings []Finding }

// Error lists all findings.
func (e *Error) Error() string {
	var out strings.Builder
	noun := "reasons"
	if len(e.Findings) == 1 {
		noun = "reason"
	}
	fmt.Fprintf(&out, "%d %s not to begin; nothing was changed", len(e.Findings), noun)
	for _, f := range e.Findings {
		out.WriteString("\n  " + strings.ReplaceAll(f.String(), "\n", "\n  "))
	}
	return out.String()
}

// list collects findings.
type list struct{ findings []Finding }

// add notes a finding; the returned function takes what to do about it.
func (l *list) add(node, format string, args ...any) func(hint string, args ...any) {
	l.findings = append(l.findings, Finding{Node: node, What: fmt.Sprintf(format, args...)})
	at := &l.findings[len(l.findings)-1]
	return func(hint string, args ...any) { at.Hint = fmt.Sprintf(hint, args...) }
}

// error takes an error as a finding, with its hint.
func (l *list) error(node string, err error) {
	if err != nil {
		l.findings = append(l.findings, Finding{Node: node, What: strings.TrimPrefix(err.Error(), node+": "), Hint: diag.HintOf(err)})
	}
}

func (l *list) err() error {
	if len(l.findings) == 0 {
		return nil
	}
	return exit.With(exit.Refused, &Error{Findings: l.findings})
}
