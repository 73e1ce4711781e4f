package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/slipway/slipway/internal/diag"
)

// errEmpty stands for a file without a document.
var errEmpty = errors.New("the file is empty")

// parse reads exactly one document. A second one is returned as extra.
func parse(data []byte) (doc, extra *yaml.Node, err error) {
	// The library reports what it knows as errors; a panic would be its fault,
	// and must cost its user no more than a finding.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: cannot be read: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, extra = new(yaml.Node), new(yaml.Node)
	switch err = dec.Decode(doc); {
	case err == io.EOF:
		return nil, nil, errEmpty
	case err != nil:
		return nil, nil, err
	}
	switch err = dec.Decode(extra); {
	case err == io.EOF:
		return doc, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return doc, extra, nil
}

var yamlError = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)$`)

// syntaxFinding turns an error of the YAML library into a finding. The library
// names a line at most, and in its own words; the column is where the text of
// that line starts.
func (d *Document) syntaxFinding(err error) diag.Finding {
	f := diag.Finding{Pos: diag.Pos{File: d.Name}, Message: err.Error(), Hint: "an empty profile says nothing; start from profiles/base.yaml"}
	m := yamlError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return f
	}
	line, _ := strconv.Atoi(m[1])
	line = d.blame(err, line)
	f.Message, f.Hint = "not YAML: "+m[2], ""
	if tab := d.tabNear(line); tab > 0 {
		line = tab
		f.Message, f.Hint = "a tab in the indentation", "YAML is indented by spaces"
	} else if anchor, ok := strings.CutPrefix(m[2], "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		line = d.lineWith("*" + anchor)
		f.Message, f.Hint = "an alias (*"+anchor+")", "aliases and anchors are not used in profiles; if it is meant as text, put it in quotes"
	} else {
		f.Hint = syntaxHint(m[2])
	}
	if line = min(line, len(d.lines)); line > 0 {
		text := d.lines[line-1]
		f.Pos.Line, f.Pos.Col = line, 1+len(text)-len(strings.TrimLeft(text, " "))
	}
	return f
}

// blame finds the line that a syntax error is about: the shortest beginning of
// the file that ends in it has the same error. The library itself names the line
// where the mapping or list around the error starts, or the one before.
func (d *Document) blame(err error, reported int) int {
	want := withoutLine(err)
	n := sort.Search(len(d.lines), func(k int) bool {
		_, _, err := parse([]byte(strings.Join(d.lines[:k+1], "\n") + "\n"))
		return err != nil && withoutLine(err) == want
	})
	if n == len(d.lines) {
		return reported
	}
	return n + 1
}

func withoutLine(err error) string {
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		return m[2]
	}
	return err.Error()
}

// tabNear finds a line indented by a tab at or just before a syntax error, or 0.
// Without a line all of the file is searched.
func (d *Document) tabNear(line int) int {
	from, to := line-2, line+1
	if line == 0 {
		from, to = 0, len(d.lines)
	}
	for i := max(from, 0); i < min(to, len(d.lines)); i++ {
		text := d.lines[i]
		if strings.Contains(text[:len(text)-len(strings.TrimLeft(text, " \t"))], "\t") {
			return i + 1
		}
	}
	return 0
}

func (d *Document) lineWith(text string) int {
	for i, line := range d.lines {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	return 0
}

func syntaxHint(message string) string {
	switch {
	case strings.Contains(message, "mapping values are not allowed"):
		return "a colon and a space inside a value need quotes around the value; or the line is indented too far"
	case strings.Contains(message, "did not find expected key"), strings.Contains(message, "could not find expected ':'"):
		return "check the indentation of this line and the one before, and that each key is followed by a colon and a space"
	case strings.Contains(message, "did not find expected '-'"):
		return "the items of a list start at the same column, each with a dash and a space"
	case strings.Contains(message, "unexpected end of stream"), strings.Contains(message, "did not find expected ','"):
		return "a quote or bracket is not closed"
	case strings.Contains(message, "cannot start any token"):
		return "a value that starts with this character needs quotes"
	}
	return ""
}
