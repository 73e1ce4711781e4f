package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
)

func TestExitPrintsErrorAndHintOnce(t *testing.T) {
	var list diag.List
	list.Add(diag.Finding{Pos: diag.Pos{File: "a.yaml", Line: 3, Col: 5}, Message: "unknown key", Source: "  bad: 1", Hint: "remove it"})
	cases := []struct {
		err  error
		code exit.Code
		want string
	}{
		{nil, exit.OK, ""},
		{errors.New("broken"), exit.Failed, "error: broken\n"},
		{fmt.Errorf("outer: %w", diag.WithHint(errors.New("inner"), "do this")), exit.Failed, "error: outer: inner\nhint: do this\n"},
		{exit.With(exit.Refused, errors.New("no")), exit.Refused, "error: no\n"},
		{list.Err(), exit.Usage, "a.yaml:3:5: unknown key\n      bad: 1\n        ^\n    hint: remove it\n1 finding\n"},
	}
	for _, c := range cases {
		var b bytes.Buffer
		if code := Exit(&b, c.err); code != int(c.code) || b.String() != c.want {
			t.Errorf("%v: code %d, printed\n%s\nwant %d and\n%s", c.err, code, b.String(), c.code, c.want)
		}
	}
}

func TestOutputRefusesOtherFormats(t *testing.T) {
	var o Output
	if err := o.Set("yaml"); err == nil {
		t.Error("yaml went through")
	}
	if err := o.Set("json"); err != nil || o != JSON {
		t.Errorf("json: %v", err)
	}
}

func TestLinesTellWhatWasDone(t *testing.T) {
	var b bytes.Buffer
	err := WithProgress(&b, func(p progress.Reporter) error {
		cached := p.Start("first", 0)
		cached.Done("cached", nil)
		bytes := p.Start("second", 2048)
		bytes.Add(1024)
		bytes.Done("", errors.New("cut"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "(cached)", "1.0 KiB of 2.0 KiB", "(failed)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}

func TestExecuteSeesThatTheResultIsLost(t *testing.T) {
	lost := errors.New("no space")
	root := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
		fmt.Fprintln(cmd.OutOrStdout(), "result")
		return nil
	}}
	root.SetArgs(nil)
	if err := Execute(root, failingWriter{lost}, root.Execute); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if err := Execute(root, io.Discard, root.Execute); err != nil {
		t.Errorf("got %v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }
