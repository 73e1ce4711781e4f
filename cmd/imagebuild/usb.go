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
	key       string
	device    string
	serial    string
	yes       bool
	list      bool
	installer installerFlags
}

func newUSBCmd(host usb.Host) *cobra.Command {
	var f usbFlags
	cmd := &cobra.Command{
		Use:   "usb DIR --device DEVICE --serial SERIAL",
		Short: "write a build to a USB stick: the image, or its installer",
		Long: `usb writes the image of the build in DIR to a USB stick and reads all of it back.

With --install the stick does not become a node but installs nodes: a machine that
is started from it by UEFI takes the node of the profile that names its MAC address
or serial number, and is imaged with the same checks as over the network, once. The
receipt stays on the stick. --node chooses the nodes that the stick has; a single
one is also installed on a machine that no node names. With -O the stick becomes a
file, for a virtual machine or for dd.

Only a whole, removable or USB disk is ever written, whose serial number is the
one that was given, of which nothing is mounted or otherwise in use, and on which
the running system is not. What will be lost is shown, and the serial number has to
be typed once more, unless --yes says that this has been thought about.

The first megabyte is written last: a stick that is not complete does not boot.
A refusal ends with exit code 3 and leaves the device as it was.`,
		Example: `  imagebuild usb --list
  sudo imagebuild usb out/prod --device /dev/sdb --serial 4C530001 --key ~/.config/slipway/sign_ed25519.pub
  sudo imagebuild usb out/prod --install -p profiles/prod.yaml --device /dev/sdb --serial 4C530001
  imagebuild usb out/dev --install -p profiles/dev.yaml --node n2 --overwrite S6PXNS0W418702 -O stick-n2.img`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.device, "device", "", "the stick, such as /dev/sdb or a link in /dev/disk/by-id")
	fl.StringVar(&f.serial, "serial", "", "its serial number, as --list shows it")
	fl.StringVar(&f.key, "key", "", "public key that must have signed the build (default: ~/.config/slipway/sign_ed25519.pub)")
	fl.BoolVar(&f.yes, "yes", false, "do not ask before erasing")
	fl.BoolVar(&f.list, "list", false, "list the disks of this machine, and what speaks against each")
	f.installer.add(cmd)
	output := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.list {
			return listDevices(cmd, host, args, *output)
		}
		if err := f.check(cmd, args); err != nil {
			return cli.UsageError(cmd, err)
		}
		if f.installer.install {
			return writeInstaller(cmd, host, args[0], f, *output)
		}
		return writeNode(cmd, host, args[0], f, *output)
	}
	return cmd
}

func (f usbFlags) check(cmd *cobra.Command, args []string) error {
	if err := f.installer.check(cmd); err != nil {
		return err
	}
	switch file := f.installer.out != ""; {
	case file && (f.device != "" || f.serial != ""):
		return errors.New("a stick goes to a device or to a file (-O), not to both")
	case len(args) == 1 && (file || f.device != "" && f.serial != ""):
		return nil
	case f.installer.install:
		return errors.New("a build is needed, and --device with --serial, or -O")
	}
	return errors.New("a build, --device and --serial are needed (or --list)")
}

// writeNode makes a stick that is a node.
func writeNode(cmd *cobra.Command, host usb.Host, dir string, f usbFlags, output cli.Output) error {
	key, err := trustedKey(f.key)
	if err != nil {
		return err
	}
	image, err := usb.OpenImage(dir, key)
	if err != nil {
		return err
	}
	defer image.Close()
	device, err := writeStick(cmd, host, image, f)
	if err != nil {
		return err
	}
	index := image.Index
	if output == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), struct {
			Device usb.Device `json:"device"`
			Name   string     `json:"name"`
			Plan   string     `json:"plan"`
		}{device, index.Name, index.Plan.String()})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s holds %s, plan %s: written and read back, it can be unplugged\n", device.Path, index.Name, index.Plan.Short())
	return nil
}

// writeStick writes a stick, after everything that can be refused was and a person
// has said yes.
func writeStick(cmd *cobra.Command, host usb.Host, content usb.Content, f usbFlags) (usb.Device, error) {
	talk := cmd.ErrOrStderr()
	var job *usb.Job
	err := cli.WithProgress(talk, func(p progress.Reporter) (err error) {
		job, err = usb.Prepare(cmd.Context(), usb.Options{Content: content, Device: f.device, Serial: f.serial, Host: host, Progress: p})
		return err
	})
	if err != nil {
		return usb.Device{}, err
	}
	usb.Describe(talk, job.Device)
	if !f.yes {
		if err := confirm(cmd.Context(), cmd.InOrStdin(), talk, job.Device); err != nil {
			return usb.Device{}, err
		}
	}
	return job.Device, cli.WithProgress(talk, func(p progress.Reporter) error { return job.Write(cmd.Context(), p) })
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

// listDevices lists what is plugged in; with a build also whether that fits.
func listDevices(cmd *cobra.Command, host usb.Host, args []string, output cli.Output) error {
	var need *usb.Request
	if len(args) == 1 {
		disk, err := usb.DiskOf(args[0])
		if err != nil {
			return err
		}
		need = &usb.Request{Need: disk.Size, SectorSize: disk.SectorSize}
	}
	list, err := usb.Survey(host, need)
	if err != nil {
		return err
	}
	if output == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), list)
	}
	return printDevices(cmd.OutOrStdout(), list)
}

func printDevices(w io.Writer, list []usb.Listed) error {
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
