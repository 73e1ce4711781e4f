package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
)

// run parses args, runs the command they name, and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bootstrap",
		Short: "make booted nodes a cluster that Flux owns, rebuild a lost node",
		Long: `bootstrap makes the booted nodes of a profile a highly available k3s cluster with
Cilium, Longhorn and Flux, proves that Flux can adopt what it installed, and hands
over. Later it rebuilds any single node.

Every step looks before it acts and again afterwards, so a run may be killed at any
moment and started again. After the hand-over nothing in the cluster is changed any
more; what differs is reported as drift.

Exit codes: 0 done, 1 failed, 2 bad usage or bad profile, 3 refused to protect
data, 4 timed out.`,
		Example: `  bootstrap init-secrets -p profiles/lab.yaml --recipient age1... --recipient age1...
  bootstrap plan -p profiles/lab.yaml
  bootstrap up -p profiles/lab.yaml
  bootstrap rebuild n2 -p profiles/prod.yaml`,
	}
	for _, cmd := range commands() {
		root.AddCommand(cmd)
	}
	return root
}
