package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
)

// ask adds the flags of a command that asks a pxed, and what it does with the answer.
func ask(cmd *cobra.Command, do func(*cobra.Command, *client.Client, []string, cli.Output) error) *cobra.Command {
	var c connection
	c.add(cmd)
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") {
			return cli.UsageError(cmd, errors.New("an empty word names nothing"))
		}
		pxed, err := c.open()
		if err != nil {
			return err
		}
		return do(cmd, pxed, args, *format)
	}
	return cmd
}

// answer makes a command that asks for one thing, and shows it as text or JSON.
func answer[T any](cmd *cobra.Command, get func(context.Context, *client.Client, []string) (T, error), text func(io.Writer, T) error) *cobra.Command {
	return ask(cmd, func(cmd *cobra.Command, c *client.Client, args []string, format cli.Output) error {
		v, err := get(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		if format == cli.JSON {
			return cli.WriteJSON(cmd.OutOrStdout(), v)
		}
		return text(cmd.OutOrStdout(), v)
	})
}

func newMachinesCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:     "machines",
		Short:   "list machines, their nodes and states",
		Long:    "machines lists every machine that was seen, and each node of the profile whose\nmachine was not.",
		Example: "  pxed machines\n  pxed machines -o json",
		Args:    cli.Args(cobra.NoArgs),
	}, func(ctx context.Context, c *client.Client, _ []string) ([]desk.Machine, error) {
		return c.Machines(ctx)
	}, printMachines)
}

func printMachines(w io.Writer, list []desk.Machine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tMAC\tSERIAL\tSEEN\tWHY")
	for _, m := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", dash(m.Node), stateOf(m), dash(firstMAC(m)), dash(m.Identity.Serial), seen(m), dash(m.Why))
	}
	return t.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// stateOf is a machine's state, with what there is to know about it at a glance.
func stateOf(m desk.Machine) string {
	switch {
	case m.Refused != "":
		return "refused"
	case m.Progress != nil:
		return fmt.Sprintf("%s (%s %d %%)", m.State, m.Progress.Stage, m.Progress.Percent)
	}
	return string(m.State)
}

func firstMAC(m desk.Machine) string {
	if len(m.MACs) == 0 {
		return ""
	}
	return string(m.MACs[0])
}

func seen(m desk.Machine) string {
	if m.Seen == nil {
		return "never"
	}
	return m.Seen.Local().Format(time.DateTime)
}

func newShowCmd() *cobra.Command {
	return answer(&cobra.Command{
		Use:   "show MACHINE",
		Short: "show all that is known of one machine",
		Long: `show tells all about one machine: what it is, what it consists of, what it gets
when it boots from the network, and why. MACHINE is a node, a MAC address, a
serial number, or the machine's key.`,
		Example: "  pxed show n1\n  pxed show 52:54:00:12:34:56 -o json",
		Args:    cli.Args(cobra.ExactArgs(1)),
	}, func(ctx context.Context, c *client.Client, args []string) (desk.Machine, error) {
		return c.Machine(ctx, args[0])
	}, printMachine)
}

// printMachine shows a machine, also as the answer of commands that change it.
func printMachine(w io.Writer, m desk.Machine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	row("machine", string(m.Key))
	row("node", m.Node)
	row("state", stateOf(m))
	row("known by", m.Bound)
	row("seen", seen(m))
	row("why", m.Why)
	for _, reason := range m.Reasons {
		row("", "- "+reason)
	}
	if m.Turned != nil {
		row("turned away", m.Turned.Reason+", at "+m.Turned.At.Local().Format(time.DateTime))
	}
	row("to do", m.Hint)
	row("on boot", m.Boots)
	printGrant(row, m.Grant)
	printProgress(row, m.Progress)
	printIdentity(row, m)
	printReport(row, m.Report)
	return t.Flush()
}

func printGrant(row func(name, value string), g *desk.Grant) {
	if g == nil || !g.Live {
		return
	}
	row("armed", fmt.Sprintf("until %s, try %d of %d", g.Expires.Local().Format(time.DateTime), g.Tries, g.MaxTries))
	row("may destroy", strings.Join(g.Overwrite, ", "))
	row("sanitize", string(g.Sanitize))
	for _, d := range g.Data {
		row("data disk", d.Name+": "+string(d.Policy))
	}
}

func printProgress(row func(name, value string), p *desk.Progress) {
	if p == nil {
		return
	}
	text := fmt.Sprintf("%s, %d %%, %s of %s", p.Stage, p.Percent, size(p.Done), size(p.Total))
	if p.Rate > 0 {
		text += fmt.Sprintf(", %s/s, %d s left", size(int64(p.Rate)), p.Left)
	}
	row("progress", text)
	row("", p.Note)
}

func printIdentity(row func(name, value string), m desk.Machine) {
	var macs []string
	for _, mac := range m.MACs {
		macs = append(macs, string(mac))
	}
	row("MAC", strings.Join(macs, ", "))
	row("serial", m.Identity.Serial)
	row("UUID", m.Identity.UUID)
	row("product", strings.TrimSpace(m.Identity.Vendor+" "+m.Identity.Product))
}

func printReport(row func(name, value string), r *machine.Report) {
	if r == nil {
		return
	}
	row("firmware", strings.TrimSpace(r.Firmware.Mode+" "+r.Firmware.Vendor+" "+r.Firmware.Version))
	row("CPU", fmt.Sprintf("%d x %s", r.CPU.Cores, r.CPU.Model))
	row("flags", strings.Join(r.CPU.Flags, " "))
	row("memory", size(r.Memory))
	for _, d := range r.Disks {
		row("disk", fmt.Sprintf("%s %s %s %s", d.Name, dash(d.ID()), size(d.Size), content(d)))
	}
	for _, n := range r.NICs {
		row("NIC", fmt.Sprintf("%s %s %s", n.Name, n.MAC, n.Driver))
	}
}

func content(d machine.Disk) string {
	if len(d.Content) == 0 {
		return "blank"
	}
	var out []string
	for _, s := range d.Content {
		out = append(out, strings.TrimSpace(s.Type+" "+s.Label))
	}
	return strings.Join(out, ", ")
}

func size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// writeLine writes v as one line of JSON.
func writeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
