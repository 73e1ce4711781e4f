package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/imagebuild"
)

func newPlanCmd() *cobra.Command {
	var flags buildFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "show what a build would make, and its digest; write nothing",
		Example: `  imagebuild plan -p profiles/prod.yaml
  imagebuild plan -o json | jq .rootfs.packages`,
		Args: cli.Args(cobra.NoArgs),
	}
	flags.add(cmd)
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := imagebuild.Resolve(flags.request)
		if err != nil {
			return err
		}
		if *format == cli.JSON {
			text, err := r.Plan.Encode()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}
		return r.Plan.Text(cmd.OutOrStdout())
	}
	return cmd
}
