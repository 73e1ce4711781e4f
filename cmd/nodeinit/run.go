package main

import (
	"context"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
)

// run parses args, runs the command they name, and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return cli.Exit(stderr, root.ExecuteContext(ctx))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "slipway-node",
		Short: "explain this node",
		Long: `slipway-node explains a running Slipway node: how it was started, what is missing
until it is ready for k3s, and what of it outlives a restart.

Exit codes: 0 done, 1 failed, 2 bad usage, 3 refused to protect data, 4 timed out.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(cli.UsageError)
	root.AddCommand(newStatus(), newReady(), newPersist(), newCheck(), newReport(), newFacts(), newData(), newConnect(), newEmergency())
	return root
}
