package qemu

import (
	"fmt"
	"regexp"
	"strings"
)

// Like is a pattern for words on a console. Under emulation on a busy host a serial
// port now and then sends a character twice, or in place of the one that follows,
// also of what the kernel itself says; that must not decide a test.
func Like(words string) string {
	var b strings.Builder
	last := ""
	for _, r := range words {
		c := regexp.QuoteMeta(string(r))
		if last == "" {
			b.WriteString(c)
		} else {
			fmt.Fprintf(&b, "(?:%s)?(?:%s|%s)", last, c, last)
		}
		last = c
	}
	return b.String()
}
