package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap"
	"github.com/slipway/slipway/internal/cli"
)

func newAdoptCmd() *cobra.Command {
	var c common
	var l login
	var forget string
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "learn a living cluster, and write it into the ledger",
		Long: `adopt reads a living cluster and writes into the ledger what it is recognised by: its
CA, the members of etcd, its nodes, its Helm releases. Nothing in the cluster is touched.
It is what makes the loss of bootstrap's own state harmless. A ledger that knows another
cluster refuses.

--forget drops the record of a cluster that is gone for good; only then may a new one
be made on the same nodes. It wants the digest of its CA, which the refusal of up shows.`,
		Example: `  bootstrap adopt -p profiles/prod.yaml
  bootstrap adopt -p profiles/prod.yaml --forget 3f9a0c2d71be`,
		Args: cli.Args(cobra.NoArgs),
	}
	c.add(cmd, "state")
	l.add(cmd)
	cmd.Flags().StringVar(&forget, "forget", "", "drop the record of the cluster with this CA")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withSession(cmd, &c, &l, func(s *bootstrap.Session) error {
			if forget != "" {
				return runForget(cmd, s, forget)
			}
			n := narrator{w: cmd.OutOrStdout(), format: *c.output, redact: s.Redactor.Text}
			did, err := s.Adopt(cmd.Context(), n.on)
			if err != nil {
				return err
			}
			words := "the ledger knew it already"
			if did > 0 {
				words = "the ledger knows the cluster now"
			}
			return finish(cmd.OutOrStdout(), *c.output, words)
		})
	}
	return cmd
}

func runForget(cmd *cobra.Command, s *bootstrap.Session, text string) error {
	if err := s.Forget(cmd.Context(), text); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "the ledger knows no cluster any more")
	return err
}
