package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/node/ready"
	"github.com/slipway/slipway/internal/node/record"
)

// status is the JSON result of slipway-node status.
type status struct {
	Boot      record.Boot `json:"boot"`
	Hostname  string      `json:"hostname"`
	Node      string      `json:"node,omitempty"` // as the seed has it
	Cluster   string      `json:"cluster,omitempty"`
	CloudInit string      `json:"cloudInit"`
	Warnings  []string    `json:"warnings,omitempty"`
	Ready     bool        `json:"ready"`
	Missing   int         `json:"missing"`
}

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "show how this node was started and how it is",
		Args:  cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		boot, err := record.Read(record.Path)
		if err != nil {
			return diag.WithHint(err, "this system was not started by nodeinit")
		}
		s := describe(boot, ready.Observe(cmd.Context()))
		if *out == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), s)
		}
		return writeStatus(cmd.OutOrStdout(), s)
	}
	return cmd
}

func describe(boot record.Boot, o ready.Observed) status {
	s := status{Boot: boot, Hostname: o.Hostname, Warnings: o.CloudInit.Warnings, CloudInit: "running"}
	if o.Baseline != nil {
		s.Node, s.Cluster = o.Baseline.Node, o.Baseline.Cluster
	}
	switch {
	case len(o.CloudInit.Errors) > 0:
		s.CloudInit = "error"
	case o.CloudInit.Finished:
		s.CloudInit = "done"
	}
	s.Missing = len(ready.Check(o))
	s.Ready = s.Missing == 0
	return s
}

func writeStatus(w io.Writer, s status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	line("node", "%s", s.Hostname)
	if s.Cluster != "" {
		line("cluster", "%s", s.Cluster)
	}
	line("slot", "%s on %s, root hash %s", s.Boot.Slot, s.Boot.SlotDevice, s.Boot.RootHash)
	line("disk", "%s serial %q, %d MiB", s.Boot.Disk, s.Boot.Serial, s.Boot.DiskSize>>20)
	line("state", "%s, %d MiB%s", s.Boot.State, s.Boot.StateSize>>20, when(s.Boot.FirstBoot, ", made in this boot"))
	line("boot", "systemd after %d ms%s%s", s.Boot.ReachedSystemd,
		when(s.Boot.CountsTries, ", on trial: the whole slot was verified"), when(s.Boot.SlotChanged, ", another image than before"))
	line("seed", "%s", seedSource(s.Boot.SeedFromDisk))
	line("cloud-init", "%s", s.CloudInit)
	for _, text := range s.Warnings {
		line("", "warning: %s", text)
	}
	if s.Ready {
		line("ready", "yes")
	} else {
		line("ready", "no, %d missing (slipway-node ready explains)", s.Missing)
	}
	return t.Flush()
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

func seedSource(disk bool) string {
	if disk {
		return "from the boot disk"
	}
	return "not on the boot disk, cloud-init searched for it"
}
