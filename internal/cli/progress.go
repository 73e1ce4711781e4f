package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/slipway/slipway/internal/progress"
)

// WithProgress runs work with a reporter that writes to w: bars on a terminal,
// else a line for each finished task and a sign of life for those that take long.
func WithProgress(w io.Writer, work func(progress.Reporter) error) error {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bars := newBars(w)
		defer bars.close()
		return work(bars)
	}
	lines := newLines(w)
	defer lines.close()
	return work(lines)
}
