package form

import (
	"strconv"
	"strings"
)

// quoteMax bounds how much of a wrong value a message repeats, in runes.
const quoteMax = 60

// Quote renders text for a message: in double quotes, with everything that a
// terminal would act on escaped, and cut when it is long.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > quoteMax {
		text = string(runes[:quoteMax]) + "…"
	}
	return strconv.Quote(text)
}

// Redact replaces the user part of URLs, which may hold a password.
func Redact(text string) string {
	scheme := strings.Index(text, "://")
	if scheme < 0 {
		return text
	}
	rest := text[scheme+3:]
	end := strings.IndexAny(rest, "/ \"'")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndex(rest[:end], "@")
	if at < 0 {
		return text
	}
	return text[:scheme+3] + "…" + rest[at:]
}
