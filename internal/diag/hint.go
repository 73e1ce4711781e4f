package diag

import "errors"

// Hinted is an error that knows what its reader can do about it.
type Hinted struct {
	Err  error
	Hint string
}

// WithHint attaches a hint to err; it returns nil for a nil err.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Hinted{Err: err, Hint: hint}
}

// Error is the message of the wrapped error, without the hint.
func (h *Hinted) Error() string { return h.Err.Error() }

// Unwrap gives access to the wrapped error.
func (h *Hinted) Unwrap() error { return h.Err }

// HintOf returns the outermost hint in the chain of err, or "".
func HintOf(err error) string {
	var h *Hinted
	if errors.As(err, &h) {
		return h.Hint
	}
	return ""
}
