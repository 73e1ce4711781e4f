package main

import "github.com/spf13/cobra"

// commands are the subcommands, in the order of a cluster's life.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newInitSecretsCmd(), newGitOpsInitCmd(), newPlanCmd(), newUpCmd(), newStatusCmd(), newVerifyCmd(), newParityCmd(), newSupportCmd(),
		newTrustCmd(), newAdoptCmd(), newSnapshotCmd(), newRebuildCmd(),
	}
}
