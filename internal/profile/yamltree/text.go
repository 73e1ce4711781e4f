package yamltree

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/slipway/slipway/internal/diag"
)

// MaxSize bounds a file, in bytes. The largest sensible profile has a few kilobytes.
const MaxSize = 1 << 20

// checkText finds what makes the bytes of a file no text at all, before YAML
// is asked: its own messages for these name byte offsets.
func checkText(name string, data []byte) *diag.Finding {
	whole := func(message, hint string) *diag.Finding {
		return &diag.Finding{Pos: diag.Pos{File: name}, Message: message, Hint: hint}
	}
	switch {
	case len(data) > MaxSize:
		return whole(fmt.Sprintf("the file has %d bytes; profiles have at most %d", len(data), MaxSize), "is this a profile?")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return whole("the file is UTF-16", "save it as UTF-8 without a byte order mark")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return &diag.Finding{Pos: diag.Pos{File: name, Line: 1, Col: 1}, Message: "the file starts with a byte order mark",
			Hint: "save it as UTF-8 without a byte order mark"}
	}
	return checkRunes(name, data)
}

// checkRunes walks over the characters and stops at the first that no profile may hold.
func checkRunes(name string, data []byte) *diag.Finding {
	pos := diag.Pos{File: name, Line: 1, Col: 1}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &diag.Finding{Pos: pos, Message: fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), Hint: "save the file as UTF-8"}
		case r == 0:
			return &diag.Finding{Pos: pos, Message: "a NUL byte", Hint: "is this a text file?"}
		case r == '\n':
			pos.Line, pos.Col = pos.Line+1, 0
		case r == '\r' && !bytes.HasPrefix(data[i+1:], []byte("\n")), r < ' ' && r != '\t' && r != '\r', invisible(r):
			return &diag.Finding{Pos: pos, Message: fmt.Sprintf("invisible character U+%04X", r),
				Hint: "retype the line: pasted text often brings such characters along"}
		}
		pos.Col++
		i += n
	}
	return nil
}

// invisible holds characters that look like nothing or like a space, but are
// text (or a line break) to YAML: controls, no-break and zero-width spaces,
// direction marks, line separators.
func invisible(r rune) bool {
	switch {
	case r >= 0x7f && r <= 0xa0, r == 0xad, r == 0x61c, r == 0xfeff, r == 0xfffd:
		return true
	case r >= 0x2000 && r <= 0x200f, r >= 0x2028 && r <= 0x202f, r >= 0x205f && r <= 0x206f, r == 0x3000:
		return true
	case r >= 0xfff0 && r <= 0xffff, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
