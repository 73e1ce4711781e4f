package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/home"
	"github.com/slipway/slipway/internal/node/record"
)

func newReport() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "report",
		Short: "tell who installed this node that it is ready",
		Long: `report tells the pxed that installed this node that it is ready: its machine ID, its
SSH host keys, and which slot it runs. slipway-report.service does it once, after the
node became ready for the first time.

Exit codes: 0 heard, 1 not heard or nobody asked.`,
		Args: cli.Args(cobra.NoArgs),
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "try again until heard, at most this long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		h, err := home.Read(home.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return diag.WithHint(err, "it was not installed over the network, or the seed partition was written anew")
		}
		if err != nil {
			return err
		}
		if home.Remembered(home.Told, h) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s knows already that this node is ready\n", h.Server)
			return nil
		}
		ready, err := self()
		if err != nil {
			return err
		}
		if err := home.Tell(cmd.Context(), h, ready, wait); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s knows that %s is ready\n", h.Server, ready.Node)
		return home.Remember(home.Told, h)
	}
	return cmd
}

// self is what this node tells about itself.
func self() (machine.Ready, error) {
	boot, err := record.Read(record.Path)
	if err != nil {
		return machine.Ready{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return machine.Ready{}, fmt.Errorf("asking for the host name: %w", err)
	}
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return machine.Ready{}, fmt.Errorf("reading the machine id: %w", err)
	}
	keys, err := home.HostKeys("/etc/ssh")
	return machine.Ready{
		Node: name, MachineID: strings.TrimSpace(string(id)), HostKeys: keys, Slot: boot.Slot, RootHash: boot.RootHash,
	}, err
}
