package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/node/bootline"
	"github.com/slipway/slipway/internal/node/rescue"
)

// newEmergency is what emergency.service runs: a node whose systemd cannot go on
// must not wait for somebody who is not there.
func newEmergency() *cobra.Command {
	return &cobra.Command{
		Use:    "emergency",
		Short:  "explain why the system cannot go on, then restart (run by emergency.service)",
		Hidden: true,
		Args:   cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := os.ReadFile("/proc/cmdline")
			if err != nil {
				return fmt.Errorf("reading the kernel command line: %w", err)
			}
			// What could be read of a damaged line counts.
			line, _ := bootline.Parse(string(data))
			return rescue.Emergency(cmd.Context(), line.Slot, line.Shell, line.Reboot)
		},
	}
}
