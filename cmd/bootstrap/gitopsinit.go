package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
)

func newGitOpsInitCmd() *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use:   "gitops-init DIR",
		Short: "write a GitOps repository that Flux can take over from",
		Long: `gitops-init writes the repository that the cluster starts from into DIR, a checkout:
base and overlays, HelmReleases that adopt what bootstrap installs, Flux itself, and an
encrypted example. Files that exist stay as they are; a second environment keeps the
base of the first and lays its own over it.

What it would write is compared with the profile first, as parity does, so that parity
holds from the first commit. Look at it, commit and push.`,
		Example: `  git clone ssh://git@git.example.org/harbor/fleet && bootstrap gitops-init -p profiles/dev.yaml fleet`,
		Args:    cli.Args(cobra.ExactArgs(1)),
	}
	c.add(cmd, "build", "secrets")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := c.settings()
		if err != nil {
			return err
		}
		payload, err := material.OpenPayload(s)
		if err != nil {
			return err
		}
		out, err := material.GitOpsInit(cmd.Context(), s, payload, args[0])
		if err != nil {
			return err
		}
		if *c.output == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), out)
		}
		for _, name := range out.Written {
			fmt.Fprintln(cmd.OutOrStdout(), name)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "\n%d files written to %s, %d were there already; parity holds\n", len(out.Written), out.Dir, out.Kept)
		return nil
	}
	return cmd
}
