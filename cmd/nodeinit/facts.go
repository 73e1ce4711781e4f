package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diskselect"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/data"
	"github.com/slipway/slipway/internal/node/facts"
	"github.com/slipway/slipway/internal/node/inventory"
	"github.com/slipway/slipway/internal/node/ready"
	"github.com/slipway/slipway/internal/node/record"
)

func newFacts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "tell what bootstrap has to know of this node",
		Long: `facts tells who this node is, how its clock, network and disks are, what of the
baseline is missing, and how far it is in a cluster. It changes nothing and tells no
secret. As root it tells all; for others what only root may read is empty.`,
		Args: cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := collect(cmd.Context())
		if *out == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), f)
		}
		return writeFacts(cmd.OutOrStdout(), f)
	}
	return cmd
}

func collect(ctx context.Context) told.Facts {
	o := ready.Observe(ctx)
	boot, _ := record.Read(record.Path)
	disks := diskInventory(boot)
	f := facts.Collect(ctx, facts.Here())
	f.Image = told.Image{Slot: boot.Slot, RootHash: boot.RootHash}
	f.Disks = data.Here(nil, nil).Settled(disks)
	for _, i := range o.Interfaces {
		f.Interfaces = append(f.Interfaces, told.Interface{Name: i.Name, MAC: i.MAC, VLAN: i.VLAN, Up: i.Up, Addresses: append([]string{}, i.Addresses...)})
	}
	for _, m := range ready.Check(o) {
		f.Missing = append(f.Missing, told.Missing{Item: m.Item, What: m.What, Hint: m.Hint})
	}
	return f
}

// diskInventory lists the disks with what is on them; the one that the node runs
// from is marked.
func diskInventory(boot record.Boot) []machine.Disk {
	s := inventory.Sources{
		Sys: os.DirFS("/sys"), Proc: os.DirFS("/proc"), BootDisk: filepath.Base(boot.Disk), Now: time.Now(),
		Open: func(name string) (inventory.Reader, error) { return os.Open("/dev/" + name) },
	}
	if disks := inventory.Take(s).Disks; disks != nil {
		return disks
	}
	return []machine.Disk{}
}

func writeFacts(w io.Writer, f told.Facts) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	line("node", "%s of %s (%s)", f.Node, f.Cluster, f.Environment)
	line("machine id", "%s", f.MachineID)
	line("iSCSI", "%s", f.Initiator)
	line("clock", "%s%s%s", f.Clock.Now.UTC().Format(time.RFC3339), when(!f.Clock.Synchronised, ", not synchronised"), when(f.Clock.LocalRTC, ", hardware clock in local time"))
	for _, i := range f.Interfaces {
		line("network", "%s %s %v", i.Name, i.MAC, i.Addresses)
	}
	for _, d := range f.Disks {
		line("disk", "%s%s", diskselect.Describe(d), when(d.Boot, ", runs the system"))
	}
	for _, m := range f.Data {
		line("data", "%s at %s, UUID %s%s", m.Name, m.Path, m.UUID, when(!m.Mounted, ", not mounted"))
	}
	line("k3s", "%s %s is %s%s%s", f.K3s.Version, f.K3s.Unit, f.K3s.State, when(f.K3s.Etcd, ", member "+f.K3s.Member), when(!f.K3s.CA.IsZero(), ", CA "+f.K3s.CA.Short()))
	line("baseline", "%d missing", len(f.Missing))
	return t.Flush()
}
