package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/cli"
)

func newSnapshotCmd() *cobra.Command {
	var c common
	var l login
	var keep int
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "save etcd now; list shows what is saved",
		Long: `snapshot takes a snapshot of etcd through a living server, verifies it, and keeps it
in the state directory, with its digest beside it. It holds every Secret of the cluster:
the directory is for you only, and a copy somewhere else wants the same care.

On a server that is to begin anew from one:
  k3s server --cluster-reset --cluster-reset-restore-path=FILE`,
		Args: cli.Args(cobra.NoArgs),
	}
	c.add(cmd, "state")
	l.add(cmd)
	cmd.Flags().IntVar(&keep, "keep", bootstrap.DefaultKeep, "how many snapshots are kept; older ones are removed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if keep < 1 {
			return cli.UsageError(cmd, errors.New("--keep must be at least 1"))
		}
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			i, err := s.TakeSnapshot(cmd.Context(), keep, "asked for", func(words string) { fmt.Fprintln(cmd.ErrOrStderr(), "waiting", words) })
			if err != nil {
				return err
			}
			if *c.output == cli.JSON {
				return cli.WriteJSON(cmd.OutOrStdout(), i)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), s.Snapshots(keep).Path(i))
			return err
		})
	}
	cmd.AddCommand(newSnapshotListCmd())
	return cmd
}

func newSnapshotListCmd() *cobra.Command {
	var c common
	var l login
	cmd := &cobra.Command{Use: "list", Short: "show the snapshots that are kept, and whether they are whole", Args: cli.Args(cobra.NoArgs)}
	c.add(cmd, "state")
	l.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			k := s.Snapshots(bootstrap.DefaultKeep)
			list, err := k.List()
			if err != nil {
				return err
			}
			if *c.output == cli.JSON {
				return cli.WriteJSON(cmd.OutOrStdout(), list)
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "TAKEN\tSIZE\tWHOLE\tWHY\tFILE")
			for _, i := range list {
				whole := "yes"
				if err := k.Verify(i); err != nil {
					whole = err.Error()
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", i.Taken.UTC().Format(time.RFC3339), humanize.IBytes(uint64(i.Size)), whole, i.Why, k.Path(i))
			}
			return t.Flush()
		})
	}
	return cmd
}
