package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	told "github.com/slipway/slipway/internal/bootstrap/facts"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/node/data"
	"github.com/slipway/slipway/internal/node/facts"
	"github.com/slipway/slipway/internal/node/record"
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "show the data disks of this node, and where they are mounted",
		Args:  cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		kept := told.Data{Format: told.DataFormat, Mounts: facts.Here().Data()}
		return writeData(cmd.OutOrStdout(), *out, kept)
	}
	cmd.AddCommand(newDataMake())
	return cmd
}

func newDataMake() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "make",
		Short: "take the data disks that are wanted on standard input (run by bootstrap)",
		Long: `make reads which data disks the node shall have, as JSON from standard input. A disk
that is blank gets a file system of its own; one that holds data of Slipway is taken as
it is, and not a byte of it is written; anything else is refused. Then they are mounted,
now and at every boot before k3s. It needs root.

Exit codes: 0 all are mounted, 1 failed, 3 refused because a disk holds something else.`,
		Args: cli.Args(cobra.NoArgs),
	}
	out := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if os.Geteuid() != 0 {
			return exit.With(exit.Usage, diag.WithHint(errors.New("only root may make data disks"), "run sudo slipway-node data make"))
		}
		var wanted told.Wanted
		if err := json.NewDecoder(cmd.InOrStdin()).Decode(&wanted); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("reading which data disks are wanted: %w", err))
		}
		boot, err := record.Read(record.Path)
		if err != nil {
			return diag.WithHint(err, "this system was not started by nodeinit")
		}
		disks := func() []machine.Disk { return diskInventory(boot) }
		say := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
		made, err := data.Here(disks, say).Make(cmd.Context(), wanted)
		if err != nil {
			return err
		}
		return writeData(cmd.OutOrStdout(), *out, made)
	}
	return cmd
}

func writeData(w io.Writer, format cli.Output, d told.Data) error {
	if format == cli.JSON {
		return cli.WriteJSON(w, d)
	}
	if len(d.Mounts) == 0 {
		_, err := fmt.Fprintln(w, "this node has taken no data disks")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DISK\tSERIAL\tUUID\tAT\tMOUNTED")
	for _, m := range d.Mounts {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%v\n", m.Name, m.Serial, m.UUID, m.Path, m.Mounted)
	}
	return t.Flush()
}

// generate is this program as systemd's generator of the data disks' mounts. It
// gets three directories; units that an operator may override go to the first.
func generate(args []string, stderr io.Writer) int {
	if len(args) == 0 {
		return cli.Exit(stderr, exit.With(exit.Usage, errors.New("a generator is started by systemd, with a directory")))
	}
	return cli.Exit(stderr, data.Generate("/", args[0]))
}

// isGenerator reports under which name the program was started.
func isGenerator(program string) bool { return filepath.Base(program) == data.GeneratorName }
