// Package lines lets a log be written a burst at a time. Each line of a log is one
// write to its file, which costs as much as the answer that it tells of; when the
// power comes back and all machines ask at once, their lines go out together.
package lines

import (
	"io"
	"sync"
)

// Writer passes on what is written to it: at once, or, while anybody holds it, when
// the last holder has released it. The zero value is not ready; see New.
type Writer struct {
	to io.Writer

	mu      sync.Mutex
	holders int
	kept    []byte
}

// most is how much is kept back, bytes: some hundred lines.
const most = 64 << 10

// New returns a writer to a file.
func New(to io.Writer) *Writer { return &Writer{to: to} }

// Hold keeps back what is written from now on. It is for as long as one burst takes:
// what is held when the process is killed is lost.
func (w *Writer) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holders++
}

// Release ends a Hold.
func (w *Writer) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders--; w.holders == 0 {
		w.flush()
	}
}

// Write implements io.Writer. The error is that of a file that was written to; what
// is kept back has none yet.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders == 0 {
		return w.to.Write(p)
	}
	if w.kept = append(w.kept, p...); len(w.kept) >= most {
		w.flush()
	}
	return len(p), nil
}

// flush writes what was kept back. There is nobody to tell that a log cannot be
// written, as with any log.
func (w *Writer) flush() {
	if len(w.kept) > 0 {
		_, _ = w.to.Write(w.kept)
		w.kept = w.kept[:0]
	}
}
