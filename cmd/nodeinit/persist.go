package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/node/persist"
)

func newPersist() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "persist",
		Short: "list what outlives a restart and what is made anew",
		Long: `persist lists what lies over the read-only slot. The kinds:
  anew   changes are lost at the next boot; the seed writes them again
  state  kept on the state file system
  slot   shows the slot's own directory
  tmpfs  empty at every boot
  file   kept on the state file system, copied to its place at every boot
Everything else is the slot itself and cannot be changed.`,
		Args: cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), persist.Table())
		}
		return writeTable(cmd.OutOrStdout())
	}
	return cmd
}

func writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tPATH\tWHY")
	for _, e := range persist.Table() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Kind, e.Path, e.Why)
	}
	return t.Flush()
}
