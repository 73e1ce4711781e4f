// Package exit names the exit codes of Slipway's programs, and carries a code
// along with an error from where it is known to where the program ends.
package exit

import (
	"errors"

	"github.com/slipway/slipway/internal/diag"
)

// Code is a process exit code.
type Code int

// The exit codes, the same in every program.
const (
	OK      Code = 0 // done
	Failed  Code = 1 // something went wrong
	Usage   Code = 2 // bad usage or bad profile
	Refused Code = 3 // refused to protect data
	Timeout Code = 4 // waited as long as allowed
)

type coded struct {
	err  error
	code Code
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// With returns err with an exit code attached; nil stays nil.
func With(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &coded{err: err, code: code}
}

// Of is the exit code for err: the attached one, Usage for findings, else Failed.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	var c *coded
	if errors.As(err, &c) {
		return c.code
	}
	var findings *diag.Error
	if errors.As(err, &findings) {
		return Usage
	}
	return Failed
}
