package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// stickyWriter remembers the first error of the writer behind it.
type stickyWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *stickyWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// Execute runs root with its result going to stdout. A result that could not be
// written, as to a full disk, is an error even when the command did not look.
func Execute(root *cobra.Command, stdout io.Writer, run func() error) error {
	out := &stickyWriter{w: stdout}
	root.SetOut(out)
	if err := run(); err != nil {
		return err
	}
	if out.err != nil {
		return fmt.Errorf("writing the result: %w", out.err)
	}
	return nil
}
