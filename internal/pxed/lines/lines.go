// Package lines writes a log a few times a second instead of once for every line.
// A line is a write to its file, and a write costs as much as the answer that it
// tells of: when the power comes back, all machines ask at once.
package lines

import (
	"io"
	"sync"
	"time"
)

// Writer passes on what is written to it: at once when nothing was for a while, and
// otherwise together with what comes within gap. Close it, or the last lines are
// lost.
type Writer struct {
	to    io.Writer
	timer *time.Timer

	mu   sync.Mutex
	last time.Time // when something was passed on
	kept []byte
}

// A line is at most gap late, and that much is lost when the process is killed. Not
// more than most bytes are kept, some hundred lines.
const (
	gap  = 5 * time.Millisecond
	most = 64 << 10
)

// New returns a writer to a file.
func New(to io.Writer) *Writer {
	w := &Writer{to: to}
	w.timer = time.AfterFunc(time.Hour, w.flush)
	w.timer.Stop()
	return w
}

// Write implements io.Writer. The error is that of a file that was written to; what
// is kept back has none yet.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	since := now.Sub(w.last)
	if len(w.kept) == 0 {
		if since >= gap {
			w.last = now
			return w.to.Write(p)
		}
		w.timer.Reset(gap - since)
	}
	if w.kept = append(w.kept, p...); len(w.kept) >= most {
		w.pass()
	}
	return len(p), nil
}

// Close passes on what is still kept. It does not close the file.
func (w *Writer) Close() {
	w.timer.Stop()
	w.flush()
}

func (w *Writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
}

// pass writes what was kept back. There is nobody to tell that a log cannot be
// written, as with any log.
func (w *Writer) pass() {
	if len(w.kept) > 0 {
		w.last = time.Now()
		_, _ = w.to.Write(w.kept)
		w.kept = w.kept[:0]
	}
}
