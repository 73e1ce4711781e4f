package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/node/record"
	"github.com/slipway/slipway/internal/node/slot"
)

// checked is the JSON result of slipway-node check.
type checked struct {
	Slot     string  `json:"slot"`
	RootHash string  `json:"rootHash"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
	Intact   bool    `json:"intact"`
}

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "read the whole active slot through verity",
		Long: `check reads every block of the active slot and lets the kernel compare it with the
root hash of the boot entry. It needs root.

Exit codes: 0 intact, 1 damaged or not readable.`,
		Args: cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		boot, err := record.Read(record.Path)
		if err != nil {
			return diag.WithHint(err, "this system was not started by nodeinit")
		}
		if os.Geteuid() != 0 {
			return exit.With(exit.Usage, diag.WithHint(fmt.Errorf("only root may read the slot"), "run sudo slipway-node check"))
		}
		device, err := mapped("/sys/block")
		if err != nil {
			return err
		}
		begin := time.Now()
		n, err := slot.ReadThrough(device)
		if err != nil {
			return err
		}
		c := checked{boot.Slot, boot.RootHash, n, time.Since(begin).Seconds(), true}
		if *out == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), c)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "slot %s is intact: %d MiB match root hash %s (%.1f s)\n", c.Slot, n>>20, c.RootHash, c.Seconds)
		return nil
	}
	return cmd
}

// mapped finds the device under verity by its name.
func mapped(sysBlock string) (string, error) {
	names, err := filepath.Glob(filepath.Join(sysBlock, "dm-*", "dm", "name"))
	if err != nil {
		return "", err
	}
	for _, file := range names {
		if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) == slot.MapName {
			return "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(file))), nil
		}
	}
	return "", diag.WithHint(fmt.Errorf("there is no verified device %s", slot.MapName), "this system was not started by nodeinit")
}
