package yamltree

import (
	"regexp"
	"strings"
)

// maxExcerpt bounds a source line in a finding, in characters.
const maxExcerpt = 160

// Keys and URLs that usually carry something that must not be repeated.
var (
	secretKey   = regexp.MustCompile(`(?i)([\w.-]*(?:password|passwd|passphrase|secret|token|private[-_]?key|access[-_]?key|api[-_]?key|credential)[\w.-]*["']?\s*:\s+)\S.*`)
	credentials = regexp.MustCompile(`://[^/@\s]+@`)
)

// Line returns line n (from 1) of the document as it may be shown: without
// secrets, and "" when there is no such line or it is too long for the column
// to be seen.
func (d *Document) Line(n, col int) string {
	if n < 1 || n > len(d.lines) || d.leaks[n] || col > maxExcerpt {
		return ""
	}
	line := strings.TrimRight(d.lines[n-1], " \t")
	if loc := secretKey.FindStringSubmatchIndex(line); loc != nil {
		line = line[:loc[3]] + "…"
	}
	line = credentials.ReplaceAllString(line, "://…@")
	if runes := []rune(line); len(runes) > maxExcerpt {
		line = string(runes[:maxExcerpt]) + "…"
	}
	return line
}

// splitLines cuts text as YAML counts lines; other breaks were refused before.
func splitLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}
