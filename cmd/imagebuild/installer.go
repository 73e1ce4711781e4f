package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/imagebuild/stick"
	"github.com/slipway/slipway/internal/imagebuild/usb"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/profilefile"
	"github.com/slipway/slipway/internal/progress"
)

// installerFlags are the flags of usb that have a meaning with --install only.
type installerFlags struct {
	install  bool
	profile  string
	nodes    []string
	order    stick.Order
	sanitize string
	data     string
	out      string
	force    bool
}

// stickValidity is how long the tickets of a stick are valid by default: sticks are
// written on one evening and used on another.
const stickValidity = 30 * 24 * time.Hour

func (f *installerFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.install, "install", false, "write an installer for nodes of the profile")
	fl.StringVarP(&f.profile, "profile", "p", defaultProfile, "with --install: profile that the build was made from")
	fl.StringSliceVar(&f.nodes, "node", nil, "with --install: node that the stick installs; may be repeated (default: every node, each on its own machine)")
	fl.StringSliceVar(&f.order.Overwrite, "overwrite", nil, "with --install: serial number or WWN of a disk whose foreign content may be destroyed; may be repeated")
	fl.StringVar(&f.sanitize, "sanitize", "", "with --install: destroy old content of the system disk first: auto, discard or zero")
	fl.StringVar(&f.data, "data", "", "with --install: all data disks: keep or wipe (default: as the profile says)")
	fl.DurationVar(&f.order.Valid, "expires", stickValidity, "with --install: how long the stick can be used")
	fl.StringVarP(&f.out, "out", "O", "", "with --install: file to write in place of a device")
	fl.BoolVar(&f.force, "force", false, "with -O: replace the file that is there")
}

// check refuses what makes no sense, flags without --install among it: who gives
// --node to a stick without --install expects something else than what would happen.
func (f *installerFlags) check(cmd *cobra.Command) error {
	if !f.install {
		for _, name := range []string{"profile", "node", "overwrite", "sanitize", "data", "expires", "out", "force"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s has a meaning only with --install", name)
			}
		}
		return nil
	}
	switch {
	case f.sanitize != "" && !slices.Contains(machine.Sanitize("").Values(), f.sanitize):
		return fmt.Errorf("unknown way to sanitize %q (auto, discard or zero)", f.sanitize)
	case f.data != "" && !slices.Contains(cluster.Policy("").Values(), f.data):
		return fmt.Errorf("unknown policy of data disks %q (keep or wipe)", f.data)
	case f.order.Valid < time.Minute:
		return fmt.Errorf("%s is no time to use a stick", f.order.Valid)
	case f.force && f.out == "":
		return errors.New("--force has a meaning only with -O")
	}
	f.order.Sanitize, f.order.Data = machine.Sanitize(f.sanitize), cluster.Policy(f.data)
	return nil
}

// writeInstaller makes a stick that installs nodes.
func writeInstaller(cmd *cobra.Command, host usb.Host, dir string, f usbFlags, output cli.Output) error {
	s, err := f.openStick(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.installer.out == "" && s.Index().Substrate == "vm" {
		err := errors.New("the build is for virtual machines: its kernel has no drivers for USB, and would not find the stick that it was started from")
		return exit.With(exit.Usage, diag.WithHint(err, "build it with substrate: metal; or write a file (-O) and give it to the virtual machine as a virtio disk"))
	}
	s.Describe(cmd.ErrOrStderr())
	if f.installer.out != "" {
		return saveInstaller(cmd, s, f.installer, output)
	}
	device, err := writeStick(cmd, host, s, f)
	if err != nil {
		return err
	}
	if output == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), installerResult{Device: &device, installer: installerOf(s)})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s installs %s: written and read back, it can be unplugged\n", device.Path, s)
	return nil
}

func saveInstaller(cmd *cobra.Command, s *stick.Stick, f installerFlags, output cli.Output) error {
	if err := stick.CheckFile(f.out, f.force); err != nil {
		return err
	}
	err := cli.WithProgress(cmd.ErrOrStderr(), func(p progress.Reporter) error { return s.Save(cmd.Context(), f.out, p) })
	if err != nil {
		return err
	}
	if output == cli.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), installerResult{File: f.out, installer: installerOf(s)})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s installs %s\n", f.out, s)
	if s.Index().Substrate == "vm" {
		fmt.Fprintln(cmd.ErrOrStderr(), "the build is for virtual machines: give it to one as a virtio disk, its kernel has no drivers for USB")
	}
	return nil
}

func (f usbFlags) openStick(dir string) (*stick.Stick, error) {
	key, err := trustedKey(f.key)
	if err != nil {
		return nil, err
	}
	p, err := profilefile.Load(f.installer.profile)
	if err != nil {
		return nil, err
	}
	o := stick.Options{
		Dir: dir, Key: key, Cluster: p.Cluster, Nodes: f.installer.nodes, Order: f.installer.order, Now: time.Now(), Random: rand.Reader,
	}
	if f.installer.out != "" {
		o.Temp = filepath.Dir(f.installer.out)
	}
	return stick.Open(o)
}

// installerResult is what was written where.
type installerResult struct {
	Device *usb.Device `json:"device,omitempty"`
	File   string      `json:"file,omitempty"`
	installer
}

type installer struct {
	Name    string    `json:"name"`
	Plan    string    `json:"plan"`
	Nodes   []string  `json:"nodes"`
	Expires time.Time `json:"expires"`
}

func installerOf(s *stick.Stick) installer {
	x := s.Index()
	out := installer{Name: x.Name, Plan: x.Plan.String(), Expires: s.Nodes[0].Expires}
	for _, t := range s.Nodes {
		out.Nodes = append(out.Nodes, t.Node)
	}
	return out
}
