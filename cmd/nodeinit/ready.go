package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/node/ready"
)

// readiness is the JSON result of slipway-node ready.
type readiness struct {
	Ready   bool            `json:"ready"`
	Missing []ready.Missing `json:"missing"`
}

func newReady() *cobra.Command {
	var wait time.Duration
	var announce bool
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "check the baseline and explain what is missing",
		Long: `ready compares the node with the baseline that its seed brought: host name,
interfaces, users, kernel modules, settings, units, programs, identity, state.
For everything that does not hold it says what it is and what to do.

Exit codes: 0 ready, 1 something is missing, 4 still missing after --wait.`,
		Example: "  slipway-node ready\n  slipway-node ready --wait 2m -o json",
		Args:    cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "look again until ready, at most this long")
	cmd.Flags().BoolVar(&announce, "announce", false, "write the marker "+ready.Marker+" and tell the consoles (root)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report := func([]ready.Missing) {}
		if wait > 0 {
			report = func(m []ready.Missing) { progress(cmd.ErrOrStderr(), m) }
		}
		missing := ready.Wait(cmd.Context(), wait, report)
		if announce {
			if err := announceReady(cmd, missing); err != nil {
				return err
			}
		}
		if err := writeReady(cmd.OutOrStdout(), *out, missing); err != nil {
			return err
		}
		return verdict(missing, wait)
	}
	return cmd
}

// progress says shortly what is waited for.
func progress(w io.Writer, missing []ready.Missing) {
	for _, m := range missing {
		fmt.Fprintf(w, "waiting: %s: %s\n", m.Item, m.What)
	}
}

func announceReady(cmd *cobra.Command, missing []ready.Missing) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("asking for the host name: %w", err)
	}
	return ready.Announce(cmd.Context(), name, missing)
}

func writeReady(w io.Writer, format cli.Output, missing []ready.Missing) error {
	if format == cli.JSON {
		if missing == nil {
			missing = []ready.Missing{}
		}
		return cli.WriteJSON(w, readiness{Ready: len(missing) == 0, Missing: missing})
	}
	_, err := io.WriteString(w, ready.Text(missing))
	return err
}

func verdict(missing []ready.Missing, wait time.Duration) error {
	if len(missing) == 0 {
		return nil
	}
	err := errors.New("the baseline does not hold")
	if wait > 0 {
		return exit.With(exit.Timeout, fmt.Errorf("%w after %s", err, wait))
	}
	return err
}
