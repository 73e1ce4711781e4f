package yamltree

import (
	"regexp"
	"strings"

	"github.com/slipway/slipway/internal/diag"
)

// leakHint goes with every secret that was found.
const leakHint = "profiles are in git: take it out, and replace the secret if it was ever committed; secrets belong in the environment's SOPS file"

// Tokens that are recognised by how their issuers mark them.
var tokens = []struct {
	form *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`AGE-SECRET-KEY-[A-Z0-9-]+`), "an age secret key"},
	{regexp.MustCompile(`PuTTY-User-Key-File-[0-9]`), "a PuTTY private key"},
	{regexp.MustCompile(`\b(ghp|gho|ghs|ghu|ghr)_[A-Za-z0-9]{20,}`), "a GitHub token"},
	{regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`), "a GitHub token"},
	{regexp.MustCompile(`\bgl(pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,}`), "a GitLab token"},
	{regexp.MustCompile(`\bK10[0-9a-f]{16,}::`), "a k3s token"},
	{regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`), "an AWS access key"},
	{regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`), "a Slack token"},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{8,}\.`), "a JSON web token"},
	{regexp.MustCompile(`\bb3BlbnNzaC1rZXktdjE`), "a private key"}, // openssh-key-v1 without its first line
	{regexp.MustCompile(`\$(1|2[aby]|5|6|y)\$[./A-Za-z0-9$,=]{20,}`), "a password hash"},
}

var (
	pemBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)
	pemEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY`)
)

// leak names the kind of secret that text holds, or is "".
func leak(text string) string {
	if pemBegin.MatchString(text) {
		return "a private key"
	}
	for _, t := range tokens {
		if t.form.MatchString(text) {
			return t.name
		}
	}
	return ""
}

// scanLeaks marks the lines that hold secrets, comments included, and reports
// them. The lines themselves go into no finding.
func (d *Document) scanLeaks() []diag.Finding {
	var found []diag.Finding
	inside := false
	for i, line := range d.lines {
		kind := leak(line)
		if kind != "" && !inside {
			found = append(found, diag.Finding{Pos: diag.Pos{File: d.Name, Line: i + 1, Col: 1 + len(line) - len(strings.TrimLeft(line, " \t"))},
				Message: kind + " in a profile", Hint: leakHint})
		}
		inside = inside || pemBegin.MatchString(line)
		if inside || kind != "" {
			d.leaks[i+1] = true
		}
		// One line may hold a whole key with its line breaks escaped.
		if pemEnd.MatchString(line) {
			inside = false
		}
	}
	return found
}
