// Package rounds measures programs beside each other: in rounds, each of which
// measures all of them, one after the other and never in the same order twice in a
// row. What else the machine does then hits all of them alike. A ratio is ours to
// theirs in one round; the median over the rounds counts.
package rounds

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// Column is one thing that is measured.
type Column struct {
	Name   string // with its unit, such as "offers/s"
	Digits int    // behind the point
}

// Aim is how ours must compare: the ratio of a column to that of one program.
type Aim struct {
	Column string
	To     string
	Least  float64 // 0 for no such bound
	Most   float64
}

// Table is one comparison. The first of Names is ours.
type Table struct {
	Title   string
	Columns []Column
	Names   []string
	Aims    []Aim

	samples map[string][][]float64 // by name, round and column
	notes   map[string]string
}

// Unknown is a value that could not be measured.
func Unknown() float64 { return math.NaN() }

// Order is the order in which a round measures.
func (t *Table) Order(round int) []string {
	n := round % len(t.Names)
	return append(slices.Clone(t.Names[n:]), t.Names[:n]...)
}

// Add adds what one round measured of one program, a value for each column.
func (t *Table) Add(name string, values ...float64) {
	if t.samples == nil {
		t.samples = map[string][][]float64{}
	}
	t.samples[name] = append(t.samples[name], values)
}

// Note is said behind the values of a program.
func (t *Table) Note(name, text string) {
	if t.notes == nil {
		t.notes = map[string]string{}
	}
	t.notes[name] = text
}

// Median is the median over all rounds.
func (t *Table) Median(name string, column int) float64 {
	var all []float64
	for _, s := range t.samples[name] {
		all = append(all, s[column])
	}
	return median(all)
}

// Ratio is the median over all rounds of ours divided by theirs.
func (t *Table) Ratio(name string, column int) float64 {
	var all []float64
	for round, s := range t.samples[name] {
		all = append(all, t.samples[t.Names[0]][round][column]/s[column])
	}
	return median(all)
}

// median is NaN when one of the values is.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Missed are the aims that were not met, in words.
func (t *Table) Missed() []string {
	var out []string
	for _, a := range t.Aims {
		got := t.Ratio(a.To, t.column(a.Column))
		if !a.met(got) {
			out = append(out, fmt.Sprintf("%s: %s is %.2f times that of %s, %s is wanted", t.Title, a.Column, got, a.To, a.bounds()))
		}
	}
	return out
}

func (a Aim) met(ratio float64) bool {
	return ratio >= a.Least && (a.Most == 0 || ratio <= a.Most)
}

func (a Aim) bounds() string {
	if a.Most == 0 {
		return fmt.Sprintf("at least %.2f", a.Least)
	}
	return fmt.Sprintf("at most %.2f", a.Most)
}

func (t *Table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// Write writes the table for a person.
func (t *Table) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s (medians of %d rounds)\n", t.Title, len(t.samples[t.Names[0]]))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "\t")
	for _, c := range t.Columns {
		fmt.Fprintf(tw, "%s\t%s\t", c.Name, t.Names[0]+" is")
	}
	fmt.Fprintln(tw)
	for _, name := range t.Names {
		if len(t.samples[name]) > 0 {
			fmt.Fprintf(tw, "  %s\t%s%s\n", name, t.cells(name), t.notes[name])
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, a := range t.Aims {
		if len(t.samples[a.To]) > 0 {
			fmt.Fprintln(w, " ", a.verdict(t.Ratio(a.To, t.column(a.Column))))
		}
	}
	return nil
}

func (a Aim) verdict(ratio float64) string {
	word := "met"
	if !a.met(ratio) {
		word = "MISSED"
	}
	return fmt.Sprintf("aim: %s %s times that of %s: %s (%.2f)", a.Column, a.bounds(), a.To, word, ratio)
}

func (t *Table) cells(name string) string {
	var b strings.Builder
	for i, c := range t.Columns {
		value, ratio := "-", "-"
		if v := t.Median(name, i); !math.IsNaN(v) {
			value = fmt.Sprintf("%.*f", c.Digits, v)
		}
		if r := t.Ratio(name, i); !math.IsNaN(r) && name != t.Names[0] {
			ratio = fmt.Sprintf("%.2f times", r)
		}
		fmt.Fprintf(&b, "%s\t%s\t", value, ratio)
	}
	return b.String()
}

// line is one program's part of a table, for other programs.
type line struct {
	What   string             `json:"what"`
	Name   string             `json:"name"`
	Values map[string]float64 `json:"values"`
	Ratios map[string]float64 `json:"ratios"` // of ours to this one's
	Rounds [][]*float64       `json:"rounds"` // by round and column; null when not known
	Note   string             `json:"note,omitempty"`
}

func (t *Table) lines() []line {
	var out []line
	for _, name := range t.Names {
		if len(t.samples[name]) == 0 {
			continue
		}
		l := line{t.Title, name, map[string]float64{}, map[string]float64{}, nil, t.notes[name]}
		for _, s := range t.samples[name] {
			l.Rounds = append(l.Rounds, known(s))
		}
		for i, c := range t.Columns {
			if v := t.Median(name, i); !math.IsNaN(v) {
				l.Values[c.Name] = v
			}
			if r := t.Ratio(name, i); !math.IsNaN(r) {
				l.Ratios[c.Name] = r
			}
		}
		out = append(out, l)
	}
	return out
}

// known is the values of a round; JSON has no NaN.
func known(values []float64) []*float64 {
	out := make([]*float64, len(values))
	for i := range values {
		if !math.IsNaN(values[i]) {
			out[i] = &values[i]
		}
	}
	return out
}

// JSON writes tables for programs.
func JSON(w io.Writer, tables ...*Table) error {
	out := struct {
		Machine string `json:"machine"`
		Results []line `json:"results"`
	}{Machine: Machine()}
	for _, t := range tables {
		out.Results = append(out.Results, t.lines()...)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// Machine says where it was measured, and how busy that was.
func Machine() string {
	return fmt.Sprintf("%s, %d CPUs, load average %s", processor(), runtime.NumCPU(), load())
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	_, rest, found := strings.Cut(string(text), "model name")
	if err != nil || !found {
		return runtime.GOARCH
	}
	name, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(name, "\t :")
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:1], "")
}
