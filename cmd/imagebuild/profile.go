package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/profilefile"
)

func newProfileCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "look at profiles",
		Args:  cli.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProfileShowCmd())
	return cmd
}

func newProfileShowCmd() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "print the merged profile, each value with the place it came from",
		Long: `show prints base and overlay as one profile. Behind each value stands the file and
line that it was read from, or "default".`,
		Example: `  imagebuild profile show -p profiles/prod.yaml
  imagebuild profile show -p profiles/prod.yaml | grep base.yaml
  imagebuild profile show -o json | jq '.[] | select(.default)'`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().StringVarP(&path, "profile", "p", defaultProfile, "profile to show")
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := profilefile.Check(path)
		if err != nil {
			return err
		}
		return p.Show(cmd.OutOrStdout(), *format == cli.JSON)
	}
	return cmd
}
