package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
)

// run parses args, runs the command they name, and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pxed",
		Short: "netboot machines, know each of them, image the armed one once",
		Long: `pxed netboots bare metal and blank virtual machines, keeps an inventory of them, and
lets exactly the machine that was armed be imaged exactly once. Whatever else
network-boots is sent to its own disk.

One pxed serves; the other commands talk to it over its unix socket, or with
--server and --token-file from another machine.

Results go to stdout, everything else to stderr; with -o json a command that fails
before it has a result leaves stdout empty.

Exit codes: 0 done, 1 failed, 2 bad usage or bad profile, 3 refused to protect
data, 4 timed out.`,
		Example: `  pxed serve -p profiles/lab.yaml --image out/lab -i eth1
  pxed machines
  pxed arm n1`,
	}
	root.AddCommand(newServeCmd(), newTokenCmd())
	for _, cmd := range []*cobra.Command{
		newMachinesCmd(), newShowCmd(), newArmCmd(), newRearmCmd(), newDisarmCmd(), newBindCmd(), newForgetCmd(), newWakeCmd(), newEventsCmd(), newStatusCmd(), newMembersCmd(),
	} {
		root.AddCommand(cmd)
	}
	return root
}
