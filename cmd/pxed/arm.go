package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/machine"
	"github.com/slipway/slipway/internal/machine/life"
	"github.com/slipway/slipway/internal/pxed/client"
	"github.com/slipway/slipway/internal/pxed/desk"
)

func newArmCmd() *cobra.Command {
	var o desk.Order
	var expires time.Duration
	var sanitize, data string
	cmd := &cobra.Command{
		Use:   "arm NODE",
		Short: "let the machine of a node be imaged, once",
		Long: `arm lets the machine of one node be imaged, once: when it next boots from the
network, its system disk is overwritten with the image. It works until it expires,
and ends with the machine's receipt.

A disk that holds something that is not Slipway's is refused unless its serial
number or WWN is named with --overwrite. Data disks are kept or wiped as the profile
says; --data decides otherwise for all of them.`,
		Example: `  pxed arm n1
  pxed arm n2 --overwrite S6PXNS0W418702 --sanitize auto --expires 15m
  pxed arm n3 --data keep -o json`,
		Args: cli.Args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Overwrite, "overwrite", nil, "serial number or WWN of a disk whose foreign content may be destroyed; may be repeated")
	f.StringVar(&sanitize, "sanitize", "", "destroy old content of the system disk first: auto, discard or zero")
	f.DurationVar(&expires, "expires", desk.DefaultValidity, "how long the machine may take to come")
	f.StringVar(&data, "data", "", "all data disks: keep or wipe (default: as the profile says)")
	f.IntVar(&o.Tries, "tries", life.DefaultTries, "how often it may be started into the installer")
	f.BoolVar(&o.Replace, "replace", false, "also when the node is being imaged right now")
	f.StringVar(&o.ID, "id", "", "key of this arming: the same again changes nothing")
	return answer(cmd, func(ctx context.Context, c *client.Client, args []string) (desk.Machine, error) {
		if err := checkArm(sanitize, data, expires, o.Tries); err != nil {
			return desk.Machine{}, cli.UsageError(cmd, err)
		}
		o.Sanitize, o.Data, o.Seconds = machine.Sanitize(sanitize), cluster.Policy(data), int64(expires/time.Second)
		return c.Arm(ctx, args[0], o)
	}, printMachine)
}

func checkArm(sanitize, data string, expires time.Duration, tries int) error {
	switch {
	case tries < 1 || tries > life.MaxTries:
		return fmt.Errorf("%d tries: from 1 to %d are possible", tries, life.MaxTries)
	case !oneOf(sanitize, append(machine.Sanitize("").Values(), "")):
		return fmt.Errorf("unknown way to sanitize %q (auto, discard or zero)", sanitize)
	case !oneOf(data, append(cluster.Policy("").Values(), "")):
		return fmt.Errorf("unknown policy of data disks %q (keep or wipe)", data)
	case expires < time.Second:
		return fmt.Errorf("%s is no time to wait for a machine", expires)
	}
	return nil
}

func oneOf(value string, allowed []string) bool {
	for _, a := range allowed {
		if value == a {
			return true
		}
	}
	return false
}

func newRearmCmd() *cobra.Command {
	return onNode("rearm", "arm a node again, as it was armed last",
		"rearm arms a node with the order that it had last: after a failure was put right,\nor after it expired.",
		(*client.Client).Rearm)
}

func newDisarmCmd() *cobra.Command {
	return onNode("disarm", "take the right to be imaged back",
		"disarm takes back what arm gave. An install that is under way is stopped and leaves\na disk that does not boot. A failed node is put aside: it boots its own disk again.",
		(*client.Client).Disarm)
}

// onNode is a command that does something to one node and shows its machine.
func onNode(name, short, long string, do func(*client.Client, context.Context, string) (desk.Machine, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " NODE", Short: short, Long: long, Example: "  pxed " + name + " n1", Args: cli.Args(cobra.ExactArgs(1)),
	}
	return answer(cmd, func(ctx context.Context, c *client.Client, args []string) (desk.Machine, error) {
		return do(c, ctx, args[0])
	}, printMachine)
}
