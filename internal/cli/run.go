package cli

import (
	"context"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Run is a program from its arguments to its exit code. SIGINT and SIGTERM end the
// context of the command, which cleans up and returns.
func Run(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root.SilenceUsage, root.SilenceErrors = true, true // Exit prints, once
	root.SetFlagErrorFunc(UsageError)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(stderr)
	return Exit(stderr, Execute(root, stdout, func() error { return root.ExecuteContext(ctx) }))
}
