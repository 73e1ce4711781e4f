// Package cli is how every program of Slipway speaks: how an error is printed,
// which exit code it gets, and how a result is written as text or JSON.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
)

// Exit prints err, if any, with its hint to w and returns the exit code.
func Exit(w io.Writer, err error) int {
	if err == nil {
		return int(exit.OK)
	}
	var findings *diag.Error
	if errors.As(err, &findings) {
		fmt.Fprintln(w, findings)
		return int(exit.Of(err))
	}
	fmt.Fprintf(w, "error: %v\n", err)
	if hint := diag.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
	code := exit.Of(err)
	if code == exit.Failed && strings.HasPrefix(err.Error(), "unknown command") {
		code = exit.Usage
	}
	return int(code)
}

// UsageError marks a flag error of a command as bad usage and says where help is.
func UsageError(cmd *cobra.Command, err error) error {
	return exit.With(exit.Usage, diag.WithHint(err, "see "+cmd.CommandPath()+" --help"))
}

// Args wraps a cobra argument check so that its error counts as bad usage.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return UsageError(cmd, err)
		}
		return nil
	}
}

// Output is the value of an -o flag.
type Output string

// The output formats.
const (
	Text Output = "text"
	JSON Output = "json"
)

// OutputFlag adds -o to cmd and returns where its value will be.
func OutputFlag(cmd *cobra.Command) *Output {
	o := Text
	cmd.Flags().VarP(&o, "output", "o", "output format: text or json")
	return &o
}

// String implements pflag.Value.
func (o *Output) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	if s != string(Text) && s != string(JSON) {
		return fmt.Errorf("unknown output format %q (text or json)", s)
	}
	*o = Output(s)
	return nil
}

// WriteJSON writes v as indented JSON with a final newline.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
