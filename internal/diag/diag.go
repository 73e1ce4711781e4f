// Package diag holds findings about what a person wrote: where it is wrong,
// what is wrong, and what to do about it.
//
// Findings are collected, never returned one by one, so that a profile with
// five mistakes costs its author one run and not five.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is a place in a text file. Line and Col count from 1, in characters;
// the zero value means "no place", a Pos with only a File means the whole file.
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// String renders the place as file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	switch {
	case p.File == "" && p.Line == 0:
		return "-"
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
}

// Finding is one thing that is wrong. Message is lower case without a period;
// Hint, when present, says what to do. Path is the dotted key in the document
// ("nodes[1].interfaces[0].mac"). Source is the line of text that Pos points to.
type Finding struct {
	Pos     Pos    `json:"pos"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Source  string `json:"source,omitempty"`
}

// String renders the finding for a terminal: place and message, the source line
// with a caret under the column, and the hint.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Pos, f.Message)
	if f.Path != "" {
		fmt.Fprintf(&b, " (%s)", harmless(f.Path))
	}
	if f.Source != "" {
		fmt.Fprintf(&b, "\n    %s", harmless(strings.ReplaceAll(f.Source, "\t", " ")))
		if f.Pos.Col > 0 {
			fmt.Fprintf(&b, "\n    %s^", strings.Repeat(" ", f.Pos.Col-1))
		}
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "\n    hint: %s", f.Hint)
	}
	return b.String()
}

// harmless takes what a terminal would obey out of text from a document; one
// character stays one character, for the caret.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// List is a collection of findings. The zero value is ready for use.
type List struct{ findings []Finding }

// Add appends a finding.
func (l *List) Add(f Finding) { l.findings = append(l.findings, f) }

// Len is the number of findings.
func (l *List) Len() int { return len(l.findings) }

// Sorted returns the findings in the order of file, line, column, and then of arrival.
func (l *List) Sorted() []Finding {
	out := slices.Clone(l.findings)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return out
}

// Err returns the list as an error, or nil when it is empty.
func (l *List) Err() error {
	if l.Len() == 0 {
		return nil
	}
	return &Error{Findings: l.Sorted()}
}

// Error is a non-empty list of findings as an error. Callers branch on it with
// errors.As: findings are the user's to mend and end in the exit code for bad input.
type Error struct{ Findings []Finding }

// Error renders all findings, one after the other, and how many there are.
func (e *Error) Error() string {
	var b strings.Builder
	for _, f := range e.Findings {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	noun := "findings"
	if len(e.Findings) == 1 {
		noun = "finding"
	}
	fmt.Fprintf(&b, "%d %s", len(e.Findings), noun)
	return b.String()
}
