package main

import (
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/imagebuild/usb"
)

// run parses args, runs the command they name, and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Outputs are to be read by others, apt's unprivileged user among them, and
	// to be the same whatever the caller's umask; secrets are created with 0600.
	syscall.Umask(0o022)
	return runOn(usb.Host{}, args, stdin, stdout, stderr)
}

// runOn is run on a machine with the devices of host.
func runOn(host usb.Host, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(host), args, stdin, stdout, stderr)
}

func newRoot(host usb.Host) *cobra.Command {
	root := &cobra.Command{
		Use:   "imagebuild",
		Short: "build bootable appliance images and their cloud-init seeds",
		Long: `imagebuild turns a profile (YAML in git) into a bootable, signed, reproducible
disk image and one cloud-init seed for each node. It needs no root, no loop
devices, no mounts and no containers.

Results go to stdout, everything else to stderr; with -o json a command that fails
before it has a result leaves stdout empty.

Exit codes: 0 done, 1 failed, 2 bad usage or bad profile, 3 refused to protect
data, 4 timed out.`,
		Version: cli.Version(),
	}
	root.AddCommand(newValidateCmd(), newSchemaCmd(), newProfileCmd(), newPlanCmd(), newBuildCmd(), newSeedCmd(), newPinCmd(), newFetchCmd(),
		newVerifyCmd(), newUSBCmd(host))
	return root
}
