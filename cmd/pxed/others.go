package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/pxed"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
)

func newBindCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:   "bind MACHINE NODE",
		Short: "check that a machine is a node, or tell what the profile lacks",
		Long: `bind looks once more at which node a machine is. What a machine is, the profile
says, by MAC address or serial number; when it is not the node that is wanted, the
answer is what to write into the profile.`,
		Example: "  pxed bind 52:54:00:99:99:99 n1",
		Args:    cli.Args(cobra.ExactArgs(2)),
	}, func(ctx context.Context, c *client.Client, args []string) (desk.Machine, error) {
		return c.Bind(ctx, args[0], args[1])
	}, printMachine)
}

// forgotten is the answer of forget.
type forgotten struct {
	Forgotten string `json:"forgotten"`
}

func newForgetCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:     "forget MACHINE",
		Short:   "drop the record of a machine that is gone",
		Long:    "forget drops what is known of a machine: one that was replaced, or whose address\nanother one has now. A machine that is armed is not forgotten.",
		Example: "  pxed forget 52:54:00:99:99:99",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client.Client, args []string) (forgotten, error) {
		return forgotten{args[0]}, c.Forget(ctx, args[0])
	}, func(w io.Writer, f forgotten) error {
		_, err := fmt.Fprintf(w, "%s is forgotten\n", f.Forgotten)
		return err
	})
}

// called is the answer of wake.
type called struct {
	node string
	Sent []string `json:"sent"`
}

func newWakeCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:     "wake NODE",
		Short:   "switch the machine of a node on (Wake-on-LAN)",
		Long:    "wake sends Wake-on-LAN packets to the MAC addresses of a node, out of every\ninterface that pxed serves. Whether the machine wakes up, its firmware decides.",
		Example: "  pxed wake n1",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client.Client, args []string) (called, error) {
		sent, err := c.Wake(ctx, args[0])
		return called{args[0], sent}, err
	}, func(w io.Writer, x called) error {
		_, err := fmt.Fprintf(w, "called %s at %s\n", x.node, strings.Join(x.Sent, ", "))
		return err
	})
}

func newEventsCmd() *cobra.Command {
	var follow bool
	var after int64
	cmd := &cobra.Command{
		Use:   "events",
		Short: "show what happened",
		Long: `events shows what happened, the oldest first. With -f it goes on until it is
stopped, and takes the stream up again where it was cut. With -o json each event is
one line.`,
		Example: "  pxed events\n  pxed events -f -o json",
		Args:    cli.Args(cobra.NoArgs),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until stopped")
	cmd.Flags().Int64Var(&after, "after", 0, "only what happened after the event of this number")
	return ask(cmd, func(cmd *cobra.Command, c *client.Client, _ []string, format cli.Output) error {
		print := func(e desk.Event) error { return printEvent(cmd, e, format) }
		if follow {
			return c.Follow(cmd.Context(), after, print)
		}
		for {
			list, next, err := c.Events(cmd.Context(), after)
			if err != nil || len(list) == 0 {
				return err
			}
			for _, e := range list {
				if err := print(e); err != nil {
					return err
				}
			}
			after = next
		}
	})
}

func printEvent(cmd *cobra.Command, e desk.Event, format cli.Output) error {
	if format == cli.JSON {
		return writeLine(cmd.OutOrStdout(), e)
	}
	code := ""
	if e.Code != "" {
		code = " [" + e.Code + "]"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%6d  %s  %-8s %s%s\n", e.Seq, e.At.Local().Format(time.DateTime), e.Kind, e.Text, code)
	return err
}

func newStatusCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:     "status",
		Short:   "show what the running pxed serves",
		Example: "  pxed status -o json",
		Args:    cli.Args(cobra.NoArgs),
	}, func(ctx context.Context, c *client.Client, _ []string) (desk.Status, error) { return c.Status(ctx) },
		func(w io.Writer, st desk.Status) error {
			_, err := fmt.Fprintf(w, "environment  %s (%s)\ncluster      %s: %s\nimage        %s %s\ndiscovery    %v\n",
				st.Environment, st.Status, st.Cluster, strings.Join(st.Nodes, ", "), st.Image.Name, st.Image.Index.Short(), st.Discover)
			return err
		})
}

func newTokenCmd() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "print the operator's token",
		Long:    "token prints the token that the web page and commands on other machines need.\npxed serve makes it on its first start; remove the file to have a new one made.",
		Example: "  pxed token",
		Args:    cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVar(&state, "state", defaultState, "state directory of the pxed")
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		token, err := pxed.ReadToken(filepath.Join(state, tokenName))
		if err != nil {
			return err
		}
		if *format == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), struct {
				Token string `json:"token"`
			}{token})
		}
		fmt.Fprintln(cmd.OutOrStdout(), token)
		return nil
	}
	return cmd
}
