package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
)

func newParityCmd() *cobra.Command {
	var c common
	var offline bool
	cmd := &cobra.Command{
		Use:   "parity",
		Short: "compare the HelmReleases of the repository with what runs",
		Long: `parity builds the GitOps repository as Flux does and compares each HelmRelease that
is to adopt a release of bootstrap with that release: name, namespaces, chart, values
and what they render. Every difference that would change the cluster is a finding with
its file, line and both sides, and exit code 3.

It compares with the running cluster; with --offline, with what the profile would
install. Encrypted values are compared and not shown.`,
		Example: `  bootstrap parity -p profiles/prod.yaml
  bootstrap parity -p profiles/dev.yaml --repo ../fleet --offline -o json`,
		Args: cli.Args(cobra.NoArgs),
	}
	c.add(cmd, "build", "state", "secrets", "repo")
	cmd.Flags().BoolVar(&offline, "offline", false, "compare with the profile instead of the running cluster")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.settings()
		if err != nil {
			return err
		}
		payload, err := material.OpenPayload(s)
		if err != nil {
			return err
		}
		verdicts, err := bootstrap.Parity(cmd.Context(), s, payload, offline)
		if err != nil {
			return err
		}
		if *c.output == cli.JSON {
			if err := cli.WriteJSON(cmd.OutOrStdout(), verdicts); err != nil {
				return err
			}
			return verdicts.Refusal()
		}
		printVerdicts(cmd, verdicts)
		return verdicts.Refusal()
	}
	return cmd
}

func printVerdicts(cmd *cobra.Command, v material.Verdicts) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if v[name].OK() {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: in parity, Flux would adopt it by HelmRelease %s\n", name, v[name].Release)
		}
	}
}
