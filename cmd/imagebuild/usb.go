package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/progress"
)

// usbFlags are the flags of usb.
type usbFlags struct {
	key    string
	device string
	serial string
	yes    bool
	list   bool
}

func newUSBCmd(host usb.Host) *cobra.Command {
	var f usbFlags
	cmd := &cobra.Command{
		Use:   "usb DIR --device DEVICE --serial SERIAL",
		Short: "write the image of a build to a USB stick",
		Long: `usb writes the image of the build in DIR to a USB stick and reads all of it back.

Only a whole, removable or USB disk is ever written, whose serial number is the
one that was given, of which nothing is mounted or otherwise in use, and on which
the running system is not. What will be lost is shown, and the serial number has to
be typed once more, unless --yes says that this has been thought about.

The first megabyte is written last: a stick that is not complete does not boot.
A refusal ends with exit code 3 and leaves the device as it was.`,
		Example: `  imagebuild usb --list
  sudo imagebuild usb out/prod --device /dev/sdb --serial 4C530001 --key ~/.config/slipway/sign_ed25519.pub`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.device, "device", "", "the stick, such as /dev/sdb or a link in /dev/disk/by-id")
	fl.StringVar(&f.serial, "serial", "", "its serial number, as --list shows it")
	fl.StringVar(&f.key, "key", "", "public key that must have signed the build (default: ~/.config/slipway/sign_ed25519.pub)")
	fl.BoolVar(&f.yes, "yes", false, "do not ask before erasing")
	fl.BoolVar(&f.list, "list", false, "list the disks of this machine, and what speaks against each")
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.list:
			return listDevices(cmd.OutOrStdout(), host, *output)
		case len(args) != 1 || f.device == "" || f.serial == "":
			return cli.UsageError(cmd, errors.New("a build, --device and --serial are needed (or --list)"))
		}
		return writeStick(cmd, host, args[0], f, *output)
	}
	return cmd
}

func writeStick(cmd *cobra.Command, host usb.Host, dir string, f usbFlags, output cli.Output) error {
	key, err := trustedKey(f.key)
	if err != nil {
		return err
	}
	talk := cmd.ErrOrStderr()
	var job *usb.Job
	err = cli.WithProgress(talk, func(p progress.Reporter) error {
		job, err = usb.Prepare(cmd.Context(), usb.Options{Dir: dir, Key: key, Device: f.device, Serial: f.serial, Host: host, Progress: p})
		return err
	})
	if err != nil {
		return err
	}
	defer job.Close()
	usb.Describe(talk, job.Device)
	if !f.yes {
		if err := confirm(cmd.Context(), cmd.InOrStdin(), talk, job.Device); err != nil {
			return err
		}
	}
	if err := cli.WithProgress(talk, func(p progress.Reporter) error { return job.Write(cmd.Context(), p) }); err != nil {
		return err
	}
	index := job.Image.Index
	if output == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Device usb.Device `json:"device"`
			Name   string     `json:"name"`
			Plan   string     `json:"plan"`
		}{job.Device, index.Name, index.Plan.String()})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s holds %s, plan %s: written and read back, it can be unplugged\n", job.Device.Path, index.Name, index.Plan.Short())
	return nil
}

// confirm has the serial number typed by a person. Without one there is no answer.
func confirm(ctx context.Context, in io.Reader, talk io.Writer, d usb.Device) error {
	if !cli.IsTerminal(in) {
		return exit.With(exit.Refused, diag.WithHint(errors.New("there is nobody to ask whether the device may be erased"), "give --yes when that is decided"))
	}
	fmt.Fprintf(talk, "type the serial number to erase it: ")
	line, err := readLine(ctx, in)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if strings.TrimSpace(line) != d.Serial {
		return exit.With(exit.Refused, errors.New("that is not its serial number, nothing was written"))
	}
	return nil
}

// readLine reads a line, or stops with the context: a person at a prompt who
// presses Ctrl-C must not have to answer first.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func listDevices(w io.Writer, host usb.Host, output cli.Output) error {
	list, err := usb.Survey(host)
	if err != nil {
		return err
	}
	if output == cli.JSON {
		return cli.WriteJSON(w, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no disks")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tSERIAL\tMODEL AND SIZE\tCAN BE WRITTEN")
	for _, d := range list {
		answer := "yes"
		if len(d.Refusals) > 0 {
			answer = "no: " + strings.Join(d.Refusals, "; ")
		}
		serial := d.Serial
		if serial == "" {
			serial = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.Path, serial, d.Title(), answer)
	}
	return t.Flush()
}
