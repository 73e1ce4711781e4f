package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/node/bootline"
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
			return emergency(cmd.Context(), line)
		},
	}
}

func emergency(ctx context.Context, line bootline.Line) error {
	fmt.Printf("\nSlipway: the system on slot %s cannot go on. Failed units:\n\n", line.Slot)
	_ = show(ctx, "/usr/bin/systemctl", "--no-pager", "--plain", "--failed")
	_ = show(ctx, "/usr/bin/journalctl", "--no-pager", "--boot", "--priority=err", "--lines=15", "--output=cat")
	if line.Shell {
		fmt.Println("\nThe profile allows a shell; leave it to restart.")
		// root has no password; --force gives the shell all the same.
		_ = show(ctx, "/usr/sbin/sulogin", "--force")
	} else if line.Reboot == 0 {
		fmt.Println("\nThe profile says not to restart by itself: switch the node off and on.")
		<-ctx.Done()
	} else {
		fmt.Printf("\nRestarting in %d s.\n", line.Reboot/time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(line.Reboot):
		}
	}
	return show(ctx, "/usr/bin/systemctl", "--force", "reboot")
}

func show(ctx context.Context, path string, args ...string) error {
	c := exec.CommandContext(ctx, path, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}
