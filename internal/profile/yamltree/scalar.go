package yamltree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// scalar keeps the text of a value as it was written. What YAML would change
// on the way (folded lines, block text) or turn into nothing (null) is refused.
func (r *reader) scalar(n *Node, y *yaml.Node, path string) {
	quoted := y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	message, hint := "", ""
	switch {
	case leak(y.Value) != "":
		r.leaked(n, y, path)
		return
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		message, hint = "block text (| or >)", "write the value on one line, after the key"
	case !quoted && isNull(y.Value):
		message, hint = "no value", "leave the key out, or give it a value"
		if y.Value != "" && y.Value != "~" {
			message, hint = y.Value+" is no value", `leave the key out; if the text is meant, write "`+y.Value+`"`
		}
	case y.Value == "":
		message, hint = "an empty text", "leave the key out, or give it a value"
	case strings.TrimSpace(y.Value) != y.Value:
		message, hint = "spaces around a value", "remove them inside the quotes"
	case strings.IndexFunc(y.Value, hidden) >= 0:
		message, hint = "a line break or an invisible character in a value", "write it on one line, without escapes"
	case !r.asWritten(y):
		message, hint = "a value that YAML changes (it goes on in the next line, has escapes or a tag)", `write it on one line, with no escapes but \" and \\; or check the indentation of the next line`
	}
	if message != "" {
		r.add(n.Pos, path, message, hint)
		return
	}
	n.Kind, n.Text, n.Plain = Scalar, y.Value, !quoted
}

func isNull(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// asWritten reports whether a scalar stands in the file as its value has it:
// YAML folds continuation lines into one and replaces escapes.
func (r *reader) asWritten(y *yaml.Node) bool {
	if y.Line < 1 || y.Line > len(r.doc.lines) {
		return false
	}
	want := y.Value
	switch {
	case y.Style&yaml.SingleQuotedStyle != 0:
		want = "'" + strings.ReplaceAll(want, "'", "''") + "'"
	case y.Style&yaml.DoubleQuotedStyle != 0:
		want = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(want) + `"`
	}
	line := []rune(r.doc.lines[y.Line-1])
	return y.Column >= 1 && y.Column <= len(line) && strings.HasPrefix(string(line[y.Column-1:]), want)
}

func hidden(c rune) bool { return unicode.IsControl(c) || invisible(c) }

// leaked withholds a secret. The scan of the lines reported it already, unless
// it is written with escapes.
func (r *reader) leaked(n *Node, y *yaml.Node, path string) {
	last := y.Line + strings.Count(y.Value, "\n") + 1
	for line := y.Line; line <= last; line++ {
		if r.doc.leaks[line] {
			return
		}
	}
	r.doc.leaks[y.Line] = true
	r.add(n.Pos, path, fmt.Sprintf("%s in a profile", leak(y.Value)), leakHint)
}

// Quote renders text as a YAML scalar that every reader takes for that very
// text, in quotes where they are needed (no, 0123, 52:54:00:12:34:56).
func Quote(text string) string {
	out, err := yaml.Marshal(text)
	if err != nil || strings.Count(string(out), "\n") != 1 {
		return strconv.Quote(text)
	}
	return strings.TrimSuffix(string(out), "\n")
}
