package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/cli"
)

func newStatusCmd() *cobra.Command {
	var c common
	var l login
	cmd := &cobra.Command{
		Use:   "status",
		Short: "show the cluster's nodes, releases, volumes and Flux",
		Long: `status reads the cluster and shows what it is: nodes, Helm releases, Longhorn's
volumes that are not healthy, and how far Flux is. It changes nothing and compares
nothing; plan does.`,
		Args: cli.Args(cobra.NoArgs),
	}
	c.add(cmd, "state")
	l.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			st, err := s.Status(cmd.Context())
			if err != nil {
				return err
			}
			if *c.output == cli.JSON {
				return cli.WriteJSON(cmd.OutOrStdout(), st)
			}
			return printStatus(cmd.OutOrStdout(), st)
		})
	}
	return cmd
}

func printStatus(w io.Writer, st bootstrap.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cluster\t%s (%s)\nAPI\t%s\t%s\n", st.Cluster, st.Environment, st.API, st.Server)
	for _, n := range st.Nodes {
		state := "ready"
		if !n.Ready {
			state = "not ready: " + n.Why
		}
		if n.Cordon {
			state += ", cordoned"
		}
		fmt.Fprintf(t, "node %s\t%s\t%s\t%s\n", n.Name, state, n.Version, n.Address)
	}
	for _, r := range st.Releases {
		fmt.Fprintf(t, "release %s\t%s\trevision %d\t%s\n", r.Name, r.Status, r.Revision, r.Chart)
	}
	for _, v := range st.Volumes {
		fmt.Fprintf(t, "volume %s\t%s\n", v.Name, v.Robustness)
	}
	if st.Server != "" {
		owns := "not handed over"
		if st.Flux.Owns {
			owns = "owns the cluster"
		}
		fmt.Fprintf(t, "Flux\t%s\t%s\n", owns, st.Flux.Revision)
	}
	for _, what := range st.Flux.Waiting {
		fmt.Fprintf(t, "waiting\t%s\n", what)
	}
	return t.Flush()
}
