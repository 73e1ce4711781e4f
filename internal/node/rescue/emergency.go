package rescue

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Emergency is for a system that systemd cannot bring up: it shows why, gives a
// shell if the profile allows one, and restarts after wait (0 waits for ever).
func Emergency(ctx context.Context, slot string, shell bool, wait time.Duration) error {
	fmt.Printf("\nSlipway: the system on slot %s cannot go on. Failed units:\n\n", slot)
	_ = attached(ctx, "/usr/bin/systemctl", "--no-pager", "--plain", "--failed")
	_ = attached(ctx, "/usr/bin/journalctl", "--no-pager", "--boot", "--priority=err", "--lines=15", "--output=cat")
	switch {
	case shell:
		fmt.Println("\nThe profile allows a shell; leave it to restart.")
		// root has no password; --force gives the shell all the same. Nobody may
		// be there to press Enter, so the question has an end (0 is none).
		_ = attached(ctx, "/usr/sbin/sulogin", "--force", fmt.Sprintf("--timeout=%d", wait/time.Second))
	case wait == 0:
		fmt.Println("\nThe profile says not to restart by itself: switch the node off and on.")
		<-ctx.Done()
	default:
		fmt.Printf("\nRestarting in %d s.\n", wait/time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	if err := attached(ctx, "/usr/bin/systemctl", "--force", "reboot"); err != nil {
		return fmt.Errorf("restarting: %w", err)
	}
	return nil
}

// attached runs a program on our own terminal.
func attached(ctx context.Context, path string, args ...string) error {
	c := exec.CommandContext(ctx, path, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}
