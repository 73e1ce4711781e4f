package qemu

import (
	"regexp"
	"testing"
)

func TestLikeForgivesAStammer(t *testing.T) {
	re := regexp.MustCompile("^" + Like("slot b.") + "$")
	for text, want := range map[string]bool{
		"slot b.": true, "sloot b.": true, "sllt b.": true, "slot  b.": true,
		"slot a.": false, "slt b.": false, "slot b": false,
	} {
		if re.MatchString(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
