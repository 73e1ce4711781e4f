package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
)

func newInitSecretsCmd() *cobra.Command {
	var c common
	var recipients []string
	cmd := &cobra.Command{
		Use:   "init-secrets",
		Short: "make the secrets that the cluster is born with",
		Long: `init-secrets makes what must be born once, such as k3s's token and the key with
which Flux reads the repository, in a SOPS file beside the profile. It is encrypted for
at least two age keys: the one that automation uses, and one for recovery that is kept
somewhere else. Commit the file.

Run again it adds what is missing and keeps the rest. For a repository over SSH add
its host key with sops as gitKnownHosts; over https gitUser and gitToken, and gitCA
for an authority of your own.`,
		Example: `  age-keygen -o ~/.config/sops/age/keys.txt
  bootstrap init-secrets -p profiles/prod.yaml --recipient age1automation... --recipient age1recovery...`,
		Args: cli.Args(cobra.NoArgs),
	}
	c.add(cmd, "secrets")
	cmd.Flags().StringArrayVar(&recipients, "recipient", nil, "age public key that can open the secrets; at least two for a new file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.settings()
		if err != nil {
			return err
		}
		born, err := material.InitSecrets(s, recipients)
		if err != nil {
			return err
		}
		if *c.output == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), born)
		}
		return printBorn(cmd, born)
	}
	return cmd
}

func printBorn(cmd *cobra.Command, b material.Born) error {
	out := cmd.OutOrStdout()
	if len(b.Made) == 0 {
		fmt.Fprintf(out, "%s has everything\n", b.Path)
	} else {
		fmt.Fprintf(out, "%s: made %s, for %d recipients\n", b.Path, strings.Join(b.Made, ", "), len(b.Recipients))
	}
	if b.DeployKey != "" {
		fmt.Fprintf(out, "\nthe forge needs this as a deploy key (read only):\n  %s\n", b.DeployKey)
	}
	return nil
}
