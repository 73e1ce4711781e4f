package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/sequence"
)

func newPlanCmd() *cobra.Command {
	return story("plan", "show what up would do, and why",
		`plan looks at everything that up would look at, in the same order, and shows what it
would create, change or destroy, on which node, and why. It changes nothing. What
cannot be seen before an earlier step was done is shown as "will".`,
		func(ctx context.Context, s *bootstrap.Session, p *material.Payload, on func(sequence.Event)) (string, error) {
			pending, err := s.Plan(ctx, p, on)
			switch {
			case err != nil:
				return "", err
			case pending == 0:
				return "no changes", nil
			}
			return fmt.Sprintf("%d steps have something to do", pending), nil
		})
}

func newUpCmd() *cobra.Command {
	return story("up", "make the nodes a cluster that Flux owns",
		`up does exactly what plan shows. It can be killed at any moment; the next up goes on
from what it finds. Only one up runs at a time.

The steps: preflight, k3s on the first server and then on the others one by one, the
network, storage, Flux, and the hand-over, which is refused unless Flux would adopt
what runs. Afterwards up only watches, and reports what has drifted.`,
		func(ctx context.Context, s *bootstrap.Session, p *material.Payload, on func(sequence.Event)) (string, error) {
			did, err := s.Up(ctx, p, on)
			switch {
			case err != nil:
				return "", err
			case did == 0:
				return "nothing had to be done", nil
			}
			return fmt.Sprintf("%d steps done; everything else was true already", did), nil
		})
}

func newVerifyCmd() *cobra.Command {
	return story("verify", "check that everything that up makes is true",
		`verify looks at everything, as plan does, and ends with exit code 1 when anything is
not as it should be, drift included.`,
		func(ctx context.Context, s *bootstrap.Session, p *material.Payload, on func(sequence.Event)) (string, error) {
			drifted := 0
			pending, err := s.Plan(ctx, p, func(e sequence.Event) {
				if e.Kind == sequence.Drifted {
					drifted++
				}
				on(e)
			})
			if err == nil && pending+drifted > 0 {
				err = exit.With(exit.Failed, fmt.Errorf("%d steps are not true, %d things have drifted", pending, drifted))
			}
			return "everything is as it should be", err
		})
}

// story is a command that goes through steps and tells of them.
func story(name, short, long string, run func(context.Context, *bootstrap.Session, *material.Payload, func(sequence.Event)) (string, error)) *cobra.Command {
	var c common
	var l login
	cmd := &cobra.Command{Use: name, Short: short, Long: long, Args: cli.Args(cobra.NoArgs), Example: "  bootstrap " + name + " -p profiles/dev.yaml"}
	c.add(cmd, "build", "state", "secrets", "repo")
	l.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			payload, err := material.OpenPayload(s.Settings)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			n := narrator{w: out, format: *c.output, redact: s.Redactor.Text}
			last, err := run(cmd.Context(), s, payload, n.on)
			if err != nil {
				return err
			}
			return finish(out, *c.output, last)
		})
	}
	return cmd
}

// finish says how it ended; the events of JSON say it themselves.
func finish(w io.Writer, format cli.Output, words string) error {
	if format == cli.JSON {
		return nil
	}
	_, err := fmt.Fprintln(w, "\n"+words)
	return err
}
