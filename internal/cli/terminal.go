package cli

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether v, a reader or writer of a command, is a terminal,
// so that there is a person to ask.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
