package form

import (
	"fmt"
	"strings"
)

const (
	label  = `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`
	domain = label + `(\.` + label + `)*`
	ipv4   = `[0-9]{1,3}(\.[0-9]{1,3}){3}`
	ipv6   = `[0-9a-f:.]*:[0-9a-f:.]+`
)

// naming holds the forms of names: of hosts, users, files in git.
func naming() []Form {
	return []Form{
		{Name: "label", Pattern: `^` + label + `$`, Explain: explainLabel,
			Want: "a DNS label (RFC 1123: a-z, 0-9 and inner dashes, at most 63)"},
		{Name: "domain", Pattern: `^` + domain + `$`, Check: checkDomain, Explain: explainDomain,
			Want: "a DNS domain in lower case, without a final dot"},
		{Name: "login", Pattern: `^[a-z_][a-z0-9_-]{0,31}$`,
			Want: "a login name (a-z, 0-9, _ and -, not starting with a digit, at most 32)"},
		{Name: "line", Pattern: `^[ -~]{1,256}$`, Want: "one line of at most 256 printable ASCII characters"},
		{Name: "secretref", Pattern: `^[A-Za-z][A-Za-z0-9_.-]{0,62}$`, Check: checkSecretRef, Explain: explainSecretRef,
			Want: "the name of a key in the environment's SOPS file"},
		{Name: "branch", Pattern: `^[A-Za-z0-9][A-Za-z0-9._/-]{0,200}$`, Check: checkBranch, Want: "a git branch name"},
		{Name: "repopath", Pattern: `^(\./)?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`, Check: checkRepoPath, Explain: explainRepoPath,
			Want: "a directory inside the repository, such as clusters/prod"},
		{Name: "path", Pattern: `^(/[A-Za-z0-9_.-]+)+$`, Check: checkPath, Want: "an absolute path, such as /var/lib/longhorn"},
	}
}

func explainLabel(text string) *Problem {
	if low := strings.ToLower(text); low != text && strings.Trim(low, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return &Problem{"upper-case letters in a name: " + Quote(text), "write " + low}
	}
	if strings.Contains(text, "_") {
		return &Problem{"an underscore in a name: " + Quote(text), "host names have dashes instead: " + strings.ReplaceAll(text, "_", "-")}
	}
	if strings.Contains(text, ".") {
		return &Problem{"a dot in a name: " + Quote(text), "give the name alone; the domain goes to network.dnsZone"}
	}
	return nil
}

func explainDomain(text string) *Problem {
	if strings.HasSuffix(text, ".") {
		return &Problem{"a final dot in a domain: " + Quote(text), "leave the dot out"}
	}
	return nil
}

func checkDomain(text string) *Problem {
	if len(text) > 253 {
		return &Problem{Message: fmt.Sprintf("a domain of %d characters; DNS allows 253", len(text))}
	}
	return nil
}

// checkBranch applies the rules of git-check-ref-format that the pattern leaves open.
func checkBranch(text string) *Problem {
	switch {
	case strings.Contains(text, ".."), strings.Contains(text, "//"), strings.Contains(text, "/."),
		strings.HasSuffix(text, "/"), strings.HasSuffix(text, "."), strings.HasSuffix(text, ".lock"):
		return &Problem{"not a git branch name: " + Quote(text), "see git check-ref-format"}
	}
	return nil
}

func explainRepoPath(text string) *Problem {
	if strings.HasPrefix(text, "/") {
		return &Problem{"an absolute path: " + Quote(text), "paths start at the top of the repository: " + strings.TrimLeft(text, "/")}
	}
	return nil
}

func checkRepoPath(text string) *Problem {
	if hasDotDot(text) {
		return &Problem{"a path that leaves the repository: " + Quote(text), "leave out .."}
	}
	return nil
}

func checkPath(text string) *Problem {
	if hasDotDot(text) {
		return &Problem{"a path with . or .. in it: " + Quote(text), "write the path it leads to"}
	}
	return nil
}

func hasDotDot(text string) bool {
	for _, part := range strings.Split(strings.TrimPrefix(text, "./"), "/") {
		if part == ".." || part == "." {
			return true
		}
	}
	return false
}

// explainSecretRef never repeats the text: it may be the secret itself.
func explainSecretRef(string) *Problem {
	return &Problem{"not the name of a key in the environment's SOPS file", "write the name alone, such as wg_home; the secret stays in the SOPS file"}
}

// checkSecretRef refuses what is as long as a key in base64 or hex.
func checkSecretRef(text string) *Problem {
	if len(text) >= 40 {
		return explainSecretRef(text)
	}
	return nil
}
